import { describePatch } from "../../../../helpers/graph/patch-tests.js";

describe("SelfAttentionGuidance", () => {
  describePatch("SelfAttentionGuidance", { scale: -1, blur_sigma: 3 }, { scale: 0 });
});
