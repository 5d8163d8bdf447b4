import { derivedModel } from "../../../host/derived-model.js";
import type { GuidanceStep } from "../../../host/types.js";
import { productOfItems, sumOfItems } from "../../../tensor/items.js";
import { weightedSum } from "../../../tensor/ops.js";
import type { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { float, model } from "../../inputs.js";

export const renormCfg = defineNode({
  key: "RenormCFG",
  category: "advanced/model",
  description:
    "Guides only below a noise level, and limits the norm of the result to a multiple of the positive side's.",
  inputs: {
    model: model(),
    cfg_trunc: float({ default: 100, min: 0, max: 100, step: 0.01 }),
    renorm_cfg: float({
      default: 1,
      min: 0,
      max: 100,
      step: 0.01,
      tooltip: "Longest norm allowed, as a multiple of the positive side's; 0: no limit.",
    }),
  },
  outputs: { MODEL: "MODEL" },
  run: ({ model, cfg_trunc, renorm_cfg }) => ({
    MODEL: derivedModel(model, {
      guidance: (before) => ({
        ...before,
        combine: (step) => (step.sigma < cfg_trunc ? bounded(step, renorm_cfg) : step.cond),
      }),
    }),
  }),
});

/** The guided estimate, item by item no longer than the positive side times a factor. */
function bounded({ cond, uncond, cfg }: GuidanceStep, factor: number): Tensor {
  const guided = weightedSum([
    [cfg, cond],
    [1 - cfg, uncond],
  ]);
  if (factor === 0) return guided;
  const [squares, most] = [productOfItems(guided, guided), productOfItems(cond, cond)];
  const shrinks = squares.map((square, item) => {
    const longest = Math.sqrt(most[item]!) * factor;
    return square > 0 && Math.sqrt(square) >= longest ? longest / Math.sqrt(square) : 1;
  });
  return sumOfItems([[shrinks, guided]]);
}
