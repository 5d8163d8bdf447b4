import { describePatch } from "../../../../helpers/graph/patch-tests.js";

describe("ModelMergeSubtract", () => {
  describePatch("ModelMergeSubtract", { multiplier: -0.5 });
});
