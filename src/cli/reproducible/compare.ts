import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { loadNative } from "../../native/load.js";
import { HASHES } from "./hashes.js";
import { SUBJECTS, type Subject } from "./measure.js";

const CHILD = fileURLToPath(new URL("child.js", import.meta.url));
const THREADS = [1, 2, 7];
const LONGEST_MS = 300_000;

/** One way in which this machine can compute, and what it computes otherwise than recorded. */
export interface Comparison {
  readonly isa: string;
  readonly threads: number;
  readonly differing: readonly Subject[];
  /** Why it could not be tried. */
  readonly failure?: string;
}

/** Compares with the recorded hashes, by each instruction set of this machine and with 1, 2 and 7 threads. */
export async function* compare(recorded = HASHES): AsyncGenerator<Comparison> {
  for (const isa of loadNative().isas()) for (const threads of THREADS) yield await compared(isa, threads, recorded);
}

async function compared(isa: string, threads: number, recorded: typeof HASHES): Promise<Comparison> {
  const env = { ...process.env, LATENTKIT_ISA: isa, LATENTKIT_THREADS: String(threads), LATENTKIT_DEVICE: "cpu" };
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [CHILD], { env, timeout: LONGEST_MS });
    const hashes = JSON.parse(stdout) as Record<Subject, string>;
    return { isa, threads, differing: SUBJECTS.filter((subject) => hashes[subject] !== recorded[subject]) };
  } catch (error) {
    return { isa, threads, differing: [], failure: (error as Error).message.split("\n")[0]! };
  }
}
