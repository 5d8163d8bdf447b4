import { describePatch } from "../../../../helpers/graph/patch-tests.js";

describe("ModelMergeSimple", () => {
  describePatch("ModelMergeSimple", { ratio: 0.25 }, { ratio: 1 });
});
