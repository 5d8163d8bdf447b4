import { invokeNode } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";

describe("KarrasScheduler", () => {
  it("refuses a rho whose roots are beyond float32, and one of 0", async () => {
    const inputs = { steps: 3, sigma_max: 14.614642, sigma_min: 0.0291675 };
    for (const [rho, code] of [
      [0, "input.below-minimum"],
      [0.01, "value.out-of-range"],
    ] as const)
      await refuses(
        invokeNode("KarrasScheduler", { ...inputs, rho }),
        code,
        /^KarrasScheduler, input "rho": expected /,
      );
  });
});
