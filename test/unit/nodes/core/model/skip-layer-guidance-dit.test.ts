import { describePatch } from "../../../../helpers/graph/patch-tests.js";

describe("SkipLayerGuidanceDiT", () => {
  describePatch("SkipLayerGuidanceDiT", {
    ...{ double_layers: "7", single_layers: "8", scale: 2, start_percent: 0.1, end_percent: 0.2 },
    rescaling_scale: 0.5,
  });
});
