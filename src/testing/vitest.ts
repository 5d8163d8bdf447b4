// For the set-up or the tests of vitest: `import "latentkit/testing/vitest"` adds the matchers to its `expect`, and their types.
import { expect } from "vitest";
import { matchers, type RenderMatchers } from "../testing.js";

declare module "vitest" {
  interface Matchers<T> extends RenderMatchers<Promise<void>> {}
}

expect.extend(matchers);
