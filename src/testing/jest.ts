// For the set-up or the tests of jest: `import "latentkit/testing/jest"` adds the matchers to its `expect`, and their types.
import { describe, LatentkitError } from "../base/errors.js";
import { matchers, type RenderMatchers } from "../testing.js";

declare global {
  namespace jest {
    /** Matchers of `@types/jest`. */
    interface Matchers<R> extends RenderMatchers<Promise<Awaited<R>>> {}
  }
}

// biome-ignore lint/suspicious/noTsIgnore: a project with @types/jest alone has no such module, others have it
/** @ts-ignore */
declare module "expect" {
  interface Matchers<R> extends RenderMatchers<Promise<Awaited<R>>> {}
}

const { expect } = globalThis as { expect?: { extend?: (added: typeof matchers) => void } };
if (typeof expect?.extend !== "function") {
  const sentence =
    "latentkit/testing/jest: expected the global expect of jest; without globals, call expect.extend(matchers)";
  throw new LatentkitError(
    "usage.invalid",
    `${sentence} with the matchers of latentkit/testing, received ${describe(expect)}.`,
  );
}
expect.extend(matchers);
