import { describe, LatentkitError } from "../base/errors.js";

const MAX_THREADS = 256;

/** Variables that the native core reads when it is loaded. It would take a wrong value for none. */
const VARIABLES: Readonly<Record<string, readonly [expected: string, holds: (text: string) => boolean]>> = {
  LATENTKIT_ISA: ["avx512, avx2 or baseline", (text) => ["avx512", "avx2", "baseline"].includes(text)],
  LATENTKIT_THREADS: [
    `a whole number from 1 to ${MAX_THREADS}`,
    (text) => /^\d{1,3}$/.test(text) && Number(text) >= 1 && Number(text) <= MAX_THREADS,
  ],
};

/** Throws usage.invalid for the first variable of the native core with a value that it would ignore. */
export function checkEnvironment(env: Readonly<Record<string, string | undefined>>): void {
  for (const [name, [expected, holds]] of Object.entries(VARIABLES)) {
    const text = env[name];
    if (text === undefined || text === "" || holds(text)) continue;
    const received = describe(text);
    throw new LatentkitError("usage.invalid", `${name}: expected ${expected}, received ${received}.`, {
      expected,
      received,
    });
  }
}
