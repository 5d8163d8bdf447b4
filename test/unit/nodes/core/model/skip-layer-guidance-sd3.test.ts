import { describePatch } from "../../../../helpers/graph/patch-tests.js";

describe("SkipLayerGuidanceSD3", () => {
  describePatch("SkipLayerGuidanceSD3", { layers: "7", scale: 2, start_percent: 0.1, end_percent: 0.2 }, { scale: 0 });
});
