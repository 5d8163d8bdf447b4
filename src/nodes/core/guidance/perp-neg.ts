import { derivedModel } from "../../../host/derived-model.js";
import { productOfItems, sumOfItems } from "../../../host/sampling/items.js";
import type { Conditioning, GuidanceStep } from "../../../host/types.js";
import { weightedSum } from "../../../tensor/ops.js";
import type { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { conditioning, float, model } from "../../inputs.js";

export const perpNeg = defineNode({
  key: "PerpNeg",
  displayName: "Perp-Neg (DEPRECATED by PerpNegGuider)",
  category: "_for_testing",
  description: "Guides away from the part of the negative side that is perpendicular to the positive side.",
  deprecated: true,
  inputs: {
    model: model(),
    empty_conditioning: conditioning(),
    neg_scale: float({ default: 1, min: 0, max: 100, step: 0.01 }),
  },
  outputs: { MODEL: "MODEL" },
  run: ({ model, empty_conditioning: empty, neg_scale }) => ({
    MODEL: derivedModel(model, {
      guidance: (before) => ({
        ...before,
        combine: (step) => perpendicular(step, empty, neg_scale),
        conditioning: [...(before?.conditioning ?? []), empty],
      }),
    }),
  }),
});

/**
 * empty + cfg * (p - scale * (n - p * <n, p> / <p, p>)) with p and n the two sides less the empty one, item by item.
 * Armandpour et al. 2023, "Re-imagine the Negative Prompt Algorithm".
 */
async function perpendicular(step: GuidanceStep, conditioning: Conditioning, scale: number): Promise<Tensor> {
  const { cond, uncond, cfg } = step;
  const empty = await step.predict(conditioning);
  const [p, n] = [cond, uncond].map((side) =>
    weightedSum([
      [1, side],
      [-1, empty],
    ]),
  ) as [Tensor, Tensor];
  const [products, squares] = [productOfItems(n, p), productOfItems(p, p)];
  const toPositive = squares.map((square, item) => cfg * (1 + (square > 0 ? (scale * products[item]!) / square : 0)));
  return sumOfItems([
    [toPositive.map((factor) => 1 - factor + cfg * scale), empty],
    [toPositive, cond],
    [toPositive.map(() => -cfg * scale), uncond],
  ]);
}
