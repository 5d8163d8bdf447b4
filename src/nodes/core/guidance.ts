import { inputError } from "../../base/errors.js";
import { derivedModel } from "../../host/derived-model.js";
import { perpendicular } from "../../host/sampling/guiders.js";
import { COARSE_SIGMA } from "../../host/sampling/solvers/steps.js";
import type { Guidance, GuidanceStep, Model } from "../../host/types.js";
import { productOfItems, stdOfItems, sumOfItems, termsOfItems } from "../../tensor/items.js";
import { type Term, weightedSum } from "../../tensor/ops.js";
import type { ModelSampling } from "../../tensor/sampling/model-sampling.js";
import { fourSides } from "../../tensor/shape.js";
import { Tensor } from "../../tensor/tensor.js";
import { defineNode } from "../define.js";
import { boolean, conditioning, float, model } from "../inputs.js";

export const guidanceNodes = [
  defineNode({
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
  }),
  defineNode({
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
          combine: async ({ cond, uncond, cfg, predict }) =>
            perpendicular({ positive: cond, negative: uncond, empty: await predict(empty) }, cfg, neg_scale),
          conditioning: [...(before?.conditioning ?? []), empty],
        }),
      }),
    }),
  }),
  defineNode({
    key: "DifferentialDiffusion",
    displayName: "Differential Diffusion",
    category: "_for_testing",
    description: "Reads a grey noise mask as the share of steps in which each cell may change.",
    inputs: { model: model(), strength: float({ optional: true, default: 1, min: 0, max: 1, step: 0.01 }) },
    outputs: { MODEL: "MODEL" },
    run: ({ model, strength }) => ({
      MODEL: derivedModel(model, {
        guidance: (before, sampling) => ({
          ...before,
          mask: (mask, sigma, sigmas) => {
            const isOpen = atLeast(mask, remaining(sampling, sigma, sigmas));
            return strength === 1
              ? isOpen
              : weightedSum([
                  [strength, isOpen],
                  [1 - strength, mask],
                ]);
          },
        }),
      }),
    }),
  }),
  // Ning et al. 2023, "Elucidating the Exposure Bias in Diffusion Models": the predicted noise is divided by a factor
  defineNode({
    key: "Epsilon Scaling",
    category: "model_patches/unet",
    description: "Divides the predicted noise by a factor near 1, which sharpens pictures.",
    inputs: { model: model(), scaling_factor: float({ default: 1.005, min: 0.5, max: 1.5, step: 0.001 }) },
    outputs: { MODEL: "MODEL" },
    run: ({ model, scaling_factor }) => ({
      MODEL: withAfter(model, (denoised, { x }) =>
        weightedSum([
          [1 - 1 / scaling_factor, x],
          [1 / scaling_factor, denoised],
        ]),
      ),
    }),
  }),
  defineNode({
    key: "CFGZeroStar",
    category: "advanced/guidance",
    description: "Scales the negative estimate to fit the positive one best (CFG-Zero*).",
    inputs: { model: model() },
    outputs: [{ name: "patched_model", type: "MODEL" }],
    run: ({ model }) => ({ patched_model: withAfter(model, weighed) }),
  }),
  defineNode({
    key: "CFGNorm",
    category: "advanced/guidance",
    description: "Limits each cell of the guided estimate to the length of the positive side's.",
    inputs: {
      model: model(),
      strength: float({ default: 1, min: 0, max: 100, step: 0.01 }),
      pre_cfg: boolean({
        optional: true,
        default: false,
        tooltip: "Must be false: only the guided estimate can be limited.",
      }),
    },
    outputs: [{ name: "patched_model", type: "MODEL" }],
    run: ({ model, strength, pre_cfg }) => {
      if (pre_cfg) throw inputError("value.invalid", { input: "pre_cfg" }, "false", pre_cfg);
      return { patched_model: withAfter(model, (denoised, { cond }) => shortened(denoised, cond, strength)) };
    },
  }),
  defineNode({
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
  }),
] as const;

/** The model with one more change of its guided estimate. */
const withAfter = (model: Model, change: NonNullable<Guidance["after"]>[number]): Model =>
  derivedModel(model, { guidance: (before) => ({ ...before, after: [...(before?.after ?? []), change] }) });

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

/** Share of the schedule, in timesteps, that is left at a noise level. Levin and Fried 2023, "Differential Diffusion". */
function remaining(sampling: ModelSampling, sigma: number, sigmas: Float32Array): number {
  const lowest = Math.max(sampling.sigmaMin, sigmas.at(-1)!);
  const [from, to] = [sampling.timestep(sigmas[0]!), sampling.timestep(lowest)];
  if (from === to) return 1;
  return sigma <= lowest ? 0 : (sampling.timestep(sigma) - to) / (from - to);
}

/** 1 where the mask is at least the threshold, else 0. */
function atLeast(mask: Tensor, threshold: number): Tensor {
  const out = Tensor.unfilled(mask.shape);
  const [from, into] = [mask.data, out.data];
  for (let i = 0; i < into.length; i++) into[i] = from[i]! >= threshold ? 1 : 0;
  return out;
}

/** Keeps the scale of a negative side that is 0 finite. */
const NO_NORM = 1e-8;

/**
 * Adds (1 - s) * (cfg - 1) * negative, with s = <p, n> / <n, n> of what both sides take away from x, item by item. Fan et al.
 * 2025, "CFG-Zero*".
 */
function weighed(denoised: Tensor, { x, cond, uncond, cfg }: GuidanceStep): Tensor {
  const [p, n] = [difference(x, cond), difference(x, uncond)];
  const [products, squares] = [productOfItems(p, n), productOfItems(n, n)];
  const scales = products.map((product, item) => product / (squares[item]! + NO_NORM));
  return sumOfItems([
    [scales.map(() => 1), denoised],
    [scales.map((scale) => (1 - scale) * (cfg - 1)), uncond],
  ]);
}

/** Keeps the factor of a cell that is 0 finite. */
const NO_LENGTH = 1e-8;

/** Each cell times strength * min(1, |positive| / |guided|), with lengths over the channels. */
function shortened(guided: Tensor, positive: Tensor, strength: number): Tensor {
  const [batch, channels, height, width] = fourSides("CFGNorm", guided);
  const plane = height * width;
  const out = Tensor.unfilled(guided.shape);
  const [from, into] = [guided.data, out.data];
  for (let cell = 0; cell < batch * plane; cell++) {
    const first = Math.floor(cell / plane) * channels * plane + (cell % plane);
    const length = lengthOf(from, first, plane, channels);
    const factor = strength * Math.min(1, lengthOf(positive.data, first, plane, channels) / (length + NO_LENGTH));
    for (let i = first, left = channels; left > 0; i += plane, left--) into[i] = from[i]! * factor;
  }
  return out;
}

/** Length of the vector of a cell's channels, in double. */
function lengthOf(values: Float32Array, first: number, plane: number, channels: number): number {
  let sum = 0;
  for (let i = first, left = channels; left > 0; i += plane, left--) sum += values[i]! * values[i]!;
  return Math.sqrt(sum);
}

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
