import { describePatch } from "../../../../helpers/graph/patch-tests.js";

describe("ModelMergeAdd", () => {
  describePatch("ModelMergeAdd", {});
});
