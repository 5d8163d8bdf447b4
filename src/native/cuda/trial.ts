// A program: opens a CUDA library and compares its results with the native core's. The verdict, JSON, goes to a pipe of
// its own, on which a library that prints does not write.
import { writeFileSync } from "node:fs";
import { messageOf } from "../../base/errors.js";
import { loadNative } from "../load.js";
import { CASES, differs } from "./cases.js";
import { CPU_TRIAL_SIDE, cudaTrialSide } from "./trial-sides.js";
import type { Trust } from "./trust.js";

const [library = "", driver = "", ordinal = ""] = process.argv.slice(2);

async function judge(): Promise<Trust> {
  try {
    const { cuda } = loadNative();
    const device = cudaTrialSide(cuda, cuda.open(library, driver, Number(ordinal)));
    for (const { name, run } of CASES) {
      const difference = differs(await run(CPU_TRIAL_SIDE), await run(device));
      if (difference !== undefined)
        return { trusted: false, reason: `${name} differs from the CPU's result: ${difference}.` };
    }
    return { trusted: true };
  } catch (error) {
    return { trusted: false, reason: messageOf(error) };
  }
}

/** As trust.ts opens it. */
const VERDICT_PIPE = 3;
writeFileSync(VERDICT_PIPE, JSON.stringify(await judge()));
