import { concatBatch, sliceBatch } from "../../../tensor/batch.js";
import { weightedSum } from "../../../tensor/ops.js";
import { Tensor } from "../../../tensor/tensor.js";
import { changed, type GuidanceMethod } from "./cfg.js";
import type { PerpNegGuider } from "./guider.js";

/** Guidance by Perp-Neg, with the sides positive, negative and empty. */
export const perpNegGuidance = (guider: PerpNegGuider): GuidanceMethod => ({
  sides: [guider.positive, guider.negative, guider.empty],
  areaOrder: [0, 2, 1],
  unused: [],
  guide: async (input) => {
    const [positive, negative, empty] = input.estimates;
    const zeros = (): Tensor => Tensor.zeros(input.x.shape);
    const sides = { positive: positive ?? zeros(), negative: negative ?? zeros(), empty: empty ?? zeros() };
    const denoised = perpendicular(sides, guider.cfg, guider.negScale);
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
  const items = Array.from({ length: positive.shape[0]! }, (_, i) => {
    const [p, n, e] = [positive, negative, empty].map((side) => sliceBatch(side, i, 1)) as [Tensor, Tensor, Tensor];
    const along = projection(p, n, e);
    const toPositive = cfg * (1 + negScale * along);
    const toNegative = -cfg * negScale;
    return weightedSum([
      [1 - toPositive - toNegative, e],
      [toPositive, p],
      [toNegative, n],
    ]);
  });
  return items.length === 1 ? items[0]! : concatBatch(items);
}

/** <n, p> / <p, p> relative to the empty conditioning; 0 where p is 0. */
function projection({ data: positive }: Tensor, { data: negative }: Tensor, { data: empty }: Tensor): number {
  let [product, square] = [0, 0];
  for (let i = 0; i < empty.length; i++) {
    const p = positive[i]! - empty[i]!;
    product += (negative[i]! - empty[i]!) * p;
    square += p * p;
  }
  return square === 0 ? 0 : product / square;
}
