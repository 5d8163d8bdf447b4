// For the set-up or the tests of jest: `import "latentkit/testing/jest"` adds the matchers to its `expect`, and their types.
import { LatentkitError } from "../base/errors.js";
import { matchers, type RenderMatchers } from "../testing.js";

declare global {
  namespace jest {
    /** Matchers of `@types/jest`. */
    interface Matchers<R> extends RenderMatchers<Promise<Awaited<R>>> {}
  }
}

// biome-ignore lint/suspicious/noTsIgnore: a project with only @types/jest lacks this module, others have it
/** @ts-ignore */
declare module "expect" {
  interface Matchers<R> extends RenderMatchers<Promise<Awaited<R>>> {}
}

const { expect } = globalThis as { expect?: { extend?: (added: typeof matchers) => void } };
if (typeof expect?.extend !== "function") {
  const message =
    "latentkit/testing/jest: Jest's global expect was not found; with injectGlobals off, call expect.extend(matchers) " +
    "with the matchers of latentkit/testing.";
  throw new LatentkitError("usage.invalid", message);
}
expect.extend(matchers);
