import { invokeNode } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";

const KEY = "ExtendIntermediateSigmas";

describe(KEY, () => {
  it("refuses more sigmas than two million, which a chain of it would multiply at each", async () => {
    const sigmas = new Float32Array(20_001).fill(1);
    const inputs = { sigmas, steps: 100, start_at_sigma: -1, end_at_sigma: 0, spacing: "linear" };
    await refuses(invokeNode(KEY, inputs), "input.invalid", /sigmas.*at most 20000 sigmas/);
  });
});
