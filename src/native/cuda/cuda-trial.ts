// A program: opens a CUDA library and compares what it computes with the native core. Its answer, JSON, goes to a pipe of
// its own, which a library that prints does not know.
import { writeFileSync } from "node:fs";
import { loadNative } from "../load.js";
import { CASES, differs } from "./cuda-cases.js";
import { cudaSide, HOST_SIDE } from "./cuda-sides.js";

const [library = "", driver = "", ordinal = ""] = process.argv.slice(2);

async function judge(): Promise<{ trusted: boolean; reason?: string }> {
  try {
    const { cuda } = loadNative();
    const device = cudaSide(cuda, cuda.open(library, driver, Number(ordinal)));
    for (const { name, run } of CASES) {
      const found = differs(await run(HOST_SIDE), await run(device));
      if (found !== undefined) return { trusted: false, reason: `${name} differs from the processor's: ${found}.` };
    }
    return { trusted: true };
  } catch (error) {
    return { trusted: false, reason: error instanceof Error ? error.message : String(error) };
  }
}

/** As cuda-trust.ts opens it. */
const ANSWER = 3;
writeFileSync(ANSWER, JSON.stringify(await judge()));
