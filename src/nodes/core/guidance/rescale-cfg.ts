import { derivedModel } from "../../../host/derived-model.js";
import type { GuidanceStep } from "../../../host/types.js";
import { stdOfItems, termsOfItems } from "../../../tensor/items.js";
import { type Term, weightedSum } from "../../../tensor/ops.js";
import type { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { float, model } from "../../inputs.js";

export const rescaleCfg = defineNode({
  key: "RescaleCFG",
  category: "advanced/model",
  description: "Rescales guided estimates to the contrast of the positive side.",
  inputs: { model: model(), multiplier: float({ default: 0.7, min: 0, max: 1, step: 0.01 }) },
  outputs: { MODEL: "MODEL" },
  run: ({ model, multiplier }) => ({
    MODEL: derivedModel(model, {
      guidance: (before) => ({ ...before, combine: (step) => atAnySigma(step, multiplier) }),
    }),
  }),
});

/** Noise level from which on float32 noise is so coarse that an estimate behind it is rounded visibly. */
const COARSE_SIGMA = 1000;

/** The rescaled estimate, at coarse noise levels with the roundings of the reference, whose estimates go through the noise. */
function atAnySigma(step: GuidanceStep, multiplier: number): Tensor | readonly Term[] {
  const { x, sigma } = step;
  if (sigma < COARSE_SIGMA) return rescaled(step, multiplier);
  const rounded = (denoised: Tensor): Tensor => difference(x, difference(x, denoised));
  const sides = { cond: rounded(step.cond), uncond: rounded(step.uncond) };
  return rounded(weightedSum(rescaled({ ...step, ...sides }, multiplier)));
}

const difference = (a: Tensor, b: Tensor): Tensor =>
  weightedSum([
    [1, a],
    [-1, b],
  ]);

/**
 * The guided velocity times multiplier * std(positive) / std(guided) + 1 - multiplier, item by item. Lin et al. 2023,
 * "Common Diffusion Noise Schedules and Sample Steps are Flawed", 3.4. A velocity is a multiple of x / (sigma^2 + 1) - D.
 */
function rescaled({ x, sigma, cond, uncond, cfg, sum }: GuidanceStep, multiplier: number): readonly Term[] {
  const share = 1 / (sigma * sigma + 1);
  const velocity = sum([
    [share, x],
    [-1, cond],
  ]);
  const positive = stdOfItems(velocity);
  weightedSum(
    [
      [share, x],
      [-cfg, cond],
      [cfg - 1, uncond],
    ],
    velocity,
  );
  const guided = stdOfItems(velocity);
  const factors = guided.map(
    (std, item) => (std > 0 ? (multiplier * positive[item]!) / std : multiplier) + 1 - multiplier,
  );
  return termsOfItems([
    [factors.map((factor) => (1 - factor) * share), x],
    [factors.map((factor) => factor * cfg), cond],
    [factors.map((factor) => factor * (1 - cfg)), uncond],
  ]);
}
