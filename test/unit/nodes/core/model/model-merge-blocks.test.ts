import { describePatch } from "../../../../helpers/graph/patch-tests.js";

describe("ModelMergeBlocks", () => {
  describePatch("ModelMergeBlocks", { input: 0.25, middle: 0.5, out: 0.75 });
});
