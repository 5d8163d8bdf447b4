import { describePatch } from "../../../../helpers/graph/patch-tests.js";

describe("PerturbedAttentionGuidance", () => {
  describePatch("PerturbedAttentionGuidance", { scale: 2 }, { scale: 0 });
});
