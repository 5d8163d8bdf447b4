import { describePatch } from "../../../../helpers/graph/patch-tests.js";

describe("FreeU", () => {
  describePatch("FreeU", { b1: 1.2, b2: 1.3, s1: 0.8, s2: 0.1 });
});
