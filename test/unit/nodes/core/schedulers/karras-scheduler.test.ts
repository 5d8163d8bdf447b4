import { invokeNode } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";

describe("KarrasScheduler", () => {
  for (const [sigma_max, rho, code] of [
    [14.6, 0, "input.below-minimum"],
    [14.6, 0.01, "value.out-of-range"],
    [0.3, 0.01, "value.out-of-range"],
  ] as const) {
    it(`refuses a rho of ${rho} from ${sigma_max} on`, () =>
      refuses(
        invokeNode("KarrasScheduler", { steps: 3, sigma_max, sigma_min: 0.03, rho }),
        code,
        /^KarrasScheduler, input "rho": expected /,
      ));
  }
});
