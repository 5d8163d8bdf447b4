import { productOfItems, sumOfItems } from "../../../tensor/items.js";
import { weightedSum } from "../../../tensor/ops.js";
import { Tensor } from "../../../tensor/tensor.js";
import { withSharedOptions } from "../shared-options.js";
import { Estimate } from "../sum.js";
import { changed, type GuidanceMethod } from "./cfg.js";
import type { PerpNegGuider } from "./guider.js";

/** Guidance by Perp-Neg, with the sides positive, negative and empty. */
export const perpNegGuidance = (guider: PerpNegGuider): GuidanceMethod => ({
  sides: [
    guider.positive,
    withSharedOptions(guider.positive, guider.negative),
    withSharedOptions(guider.positive, guider.empty),
  ],
  negative: 1,
  areaOrder: [0, 2, 1],
  unused: [],
  guide: async (input) => {
    const [positive, negative, empty] = input.estimates;
    const zeros = (): Tensor => Tensor.zeros(input.x.shape);
    const sides = { positive: positive ?? zeros(), negative: negative ?? zeros(), empty: empty ?? zeros() };
    const denoised = new Estimate([[1, perpendicular(sides, guider.cfg, guider.negScale)]]);
    return { denoised: await changed(input, denoised, positive, negative, guider.cfg), uncond: negative };
  },
});

/**
 * empty + cfg * (p - negScale * (n - p * <n, p> / <p, p>)) with p = positive - empty and n = negative - empty, for each
 * latent of a batch: the part of n along p is no reason to move away from it. Armandpour et al. 2023, "Re-imagine the
 * Negative Prompt Algorithm".
 */
export function perpendicular(
  { positive, negative, empty }: { positive: Tensor; negative: Tensor; empty: Tensor },
  cfg: number,
  negScale: number,
): Tensor {
  const [p, n] = [positive, negative].map((side) =>
    weightedSum([
      [1, side],
      [-1, empty],
    ]),
  ) as [Tensor, Tensor];
  const squares = productOfItems(p, p);
  const along = productOfItems(n, p).map((product, item) => (squares[item] === 0 ? 0 : product / squares[item]!));
  const toPositive = along.map((share) => cfg * (1 + negScale * share));
  const toNegative = -cfg * negScale;
  return sumOfItems([
    [toPositive.map((share) => 1 - share - toNegative), empty],
    [toPositive, positive],
    [toPositive.map(() => toNegative), negative],
  ]);
}
