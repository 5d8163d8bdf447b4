import { derivedModel } from "../../../host/derived-model.js";
import type { GuidanceStep } from "../../../host/types.js";
import { productOfItems, sumOfItems } from "../../../tensor/items.js";
import { weightedSum } from "../../../tensor/ops.js";
import type { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { model } from "../../inputs.js";

export const cfgZeroStar = defineNode({
  key: "CFGZeroStar",
  category: "advanced/guidance",
  description: "Scales the negative estimate to fit the positive one best (CFG-Zero*).",
  inputs: { model: model() },
  outputs: [{ name: "patched_model", type: "MODEL" }],
  run: ({ model }) => ({
    patched_model: derivedModel(model, {
      guidance: (before) => ({ ...before, after: [...(before?.after ?? []), weighed] }),
    }),
  }),
});

/** Keeps the scale of a negative side that is 0 finite. */
const NO_NORM = 1e-8;

/**
 * Adds (1 - s) * (cfg - 1) * negative, with s = <p, n> / <n, n> of what both sides take away from x, item by item. Fan et al.
 * 2025, "CFG-Zero*".
 */
function weighed(denoised: Tensor, { x, cond, uncond, cfg }: GuidanceStep): Tensor {
  const [p, n] = [cond, uncond].map((side) =>
    weightedSum([
      [1, x],
      [-1, side],
    ]),
  ) as [Tensor, Tensor];
  const [products, squares] = [productOfItems(p, n), productOfItems(n, n)];
  const scales = products.map((product, item) => product / (squares[item]! + NO_NORM));
  return sumOfItems([
    [scales.map(() => 1), denoised],
    [scales.map((scale) => (1 - scale) * (cfg - 1)), uncond],
  ]);
}
