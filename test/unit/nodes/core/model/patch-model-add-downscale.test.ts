import { describePatch } from "../../../../helpers/graph/patch-tests.js";

describe("PatchModelAddDownscale", () => {
  describePatch("PatchModelAddDownscale", {
    ...{ block_number: 2, downscale_factor: 1.5, start_percent: 0.1, end_percent: 0.4, downscale_after_skip: false },
    ...{ downscale_method: "area", upscale_method: "bislerp" },
  });
});
