import { invokeNode } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";

describe("VPScheduler", () => {
  it("names the input whose value makes sigmas infinite", async () => {
    const run = (beta_d: number, beta_min: number) =>
      invokeNode("VPScheduler", { steps: 4, beta_d, beta_min, eps_s: 0.001 });
    await refuses(run(5000, 0.1), "input.above-maximum", /input "beta_d": .* at most 88.*, received 5000\.$/);
    await refuses(run(19.9, 5000), "input.above-maximum", /input "beta_min": .* at most 88.*, received 5000\.$/);
  });
});
