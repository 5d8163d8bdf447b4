import { inputError } from "../../base/errors.js";
import { exp, log } from "../../native/elementary.js";
import { roundHalfEven } from "../../tensor/rounding.js";
import { SCHEDULERS, sigmas } from "../../tensor/sampling/sigmas.js";
import {
  betaIndices,
  flux2Sigmas,
  karrasSigmas,
  laplaceSigmas,
  polyexponentialSigmas,
  vpSigmas,
} from "../../tensor/sampling/spaced-sigmas.js";
import { Tensor } from "../../tensor/tensor.js";
import { defineNode } from "../define.js";
import { choice, float, int, model } from "../inputs.js";
import { PIXELS_OF_TOKEN } from "./model-sampling.js";
import { sigmasTensor } from "./sigmas.js";

/** Number of steps of a schedule. */
const steps = () => int({ default: 20, min: 1, max: 10000 });

const unrounded = (value: number, max: number, step = 0.01, min = 0) =>
  float({ default: value, min, max, step, round: false });
const denoise = () => float({ default: 1, min: 0, max: 1, step: 0.01 });

/** Ends of a schedule, SD 1.x's by default. */
const ends = () => ({ sigma_max: unrounded(14.614642, 5000), sigma_min: unrounded(0.0291675, 5000) });

const side = () => int({ default: 1024, min: 16, max: 16384, step: 1 });

export const schedulerNodes = [
  defineNode({
    key: "BasicScheduler",
    category: "sampling/custom_sampling/schedulers",
    description: "Sigmas of a scheduler; denoise below 1 takes the end of a longer schedule.",
    inputs: {
      model: model(),
      scheduler: choice(SCHEDULERS),
      steps: steps(),
      denoise: denoise(),
    },
    outputs: { SIGMAS: "SIGMAS" },
    run: ({ model, scheduler, steps, denoise }) => {
      // ddim_uniform may have one more
      const levels = sigmas({ model: model.sampling, scheduler, steps, denoise }).slice(-(steps + 1));
      return { SIGMAS: sigmasTensor(levels) };
    },
  }),
  defineNode({
    key: "KarrasScheduler",
    displayName: "KarrasScheduler",
    category: "sampling/custom_sampling/schedulers",
    description: "Sigmas evenly spaced in their rho-th root, and 0.",
    inputs: { steps: steps(), ...ends(), rho: unrounded(7, 100) },
    outputs: { SIGMAS: "SIGMAS" },
    run: ({ steps, sigma_max, sigma_min, rho }) => {
      refuseZero("KarrasScheduler", { rho });
      const sigmas = karrasSigmas(steps, { max: sigma_max, min: sigma_min }, rho);
      if (!sigmas.every(Number.isFinite) || (sigmas[0] === 0 && sigma_max > 0)) {
        const expected = "a number for which sigma_max ^ (1 / rho) is within float32";
        throw inputError("value.out-of-range", { node: "KarrasScheduler", input: "rho" }, expected, rho);
      }
      return { SIGMAS: sigmasTensor(sigmas) };
    },
  }),
  defineNode({
    key: "ExponentialScheduler",
    displayName: "ExponentialScheduler",
    category: "sampling/custom_sampling/schedulers",
    description: "Sigmas evenly spaced in their logarithm, and 0.",
    inputs: { steps: steps(), ...ends() },
    outputs: { SIGMAS: "SIGMAS" },
    run: ({ steps, sigma_max, sigma_min }) => {
      refuseZero("ExponentialScheduler", { sigma_max, sigma_min });
      return { SIGMAS: sigmasTensor(polyexponentialSigmas(steps, { max: sigma_max, min: sigma_min }, 1)) };
    },
  }),
  defineNode({
    key: "PolyexponentialScheduler",
    displayName: "PolyexponentialScheduler",
    category: "sampling/custom_sampling/schedulers",
    description: "Sigmas whose logarithm falls by a power law, and 0.",
    inputs: { steps: steps(), ...ends(), rho: unrounded(1, 100) },
    outputs: { SIGMAS: "SIGMAS" },
    run: ({ steps, sigma_max, sigma_min, rho }) => {
      refuseZero("PolyexponentialScheduler", { sigma_max, sigma_min });
      return { SIGMAS: sigmasTensor(polyexponentialSigmas(steps, { max: sigma_max, min: sigma_min }, rho)) };
    },
  }),
  defineNode({
    key: "LaplaceScheduler",
    category: "sampling/custom_sampling/schedulers",
    description: "Sigmas at the quantiles of a Laplace distribution of their logarithm, without a 0.",
    inputs: {
      steps: steps(),
      ...ends(),
      mu: unrounded(0, 10, 0.1, -10),
      beta: unrounded(0.5, 10, 0.1),
    },
    outputs: { SIGMAS: "SIGMAS" },
    run: ({ steps, sigma_max, sigma_min, mu, beta }) => ({
      SIGMAS: sigmasTensor(laplaceSigmas(steps, { max: sigma_max, min: sigma_min }, { mu, beta })),
    }),
  }),
  defineNode({
    key: "VPScheduler",
    displayName: "VPScheduler",
    category: "sampling/custom_sampling/schedulers",
    description: "Sigmas of the continuous variance-preserving process, and 0.",
    inputs: {
      steps: steps(),
      beta_d: unrounded(19.9, 5000),
      beta_min: unrounded(0.1, 5000),
      eps_s: unrounded(0.001, 1, 0.0001),
    },
    outputs: { SIGMAS: "SIGMAS" },
    run: ({ steps, beta_d, beta_min, eps_s }) => {
      const sigmas = vpSigmas(steps, beta_d, beta_min, eps_s);
      if (sigmas[0] === Number.POSITIVE_INFINITY) {
        const [input, value] =
          beta_d / 2 > beta_min ? (["beta_d", beta_d] as const) : (["beta_min", beta_min] as const);
        const expected = "a beta_d / 2 + beta_min of at most 88, beyond which sigmas are infinite";
        throw inputError("input.above-maximum", { node: "VPScheduler", input }, expected, value);
      }
      return { SIGMAS: sigmasTensor(sigmas) };
    },
  }),
  defineNode({
    key: "BetaSamplingScheduler",
    displayName: "BetaSamplingScheduler",
    category: "sampling/custom_sampling/schedulers",
    description: "Sigmas of the model at the quantiles of a beta distribution, and 0.",
    inputs: {
      model: model(),
      steps: steps(),
      alpha: unrounded(0.6, 50),
      beta: unrounded(0.6, 50),
    },
    outputs: { SIGMAS: "SIGMAS" },
    run: ({ model, steps, alpha, beta }) => {
      for (const [input, value] of Object.entries({ alpha, beta })) {
        const at = { node: "BetaSamplingScheduler", input };
        if (value < LEAST) throw inputError("input.below-minimum", at, `a number from ${LEAST}`, value);
      }
      const table = model.sampling.sigmas;
      const levels = betaIndices(table.length, steps, alpha, beta).map((index) => table[index]!);
      return { SIGMAS: sigmasTensor([...levels, 0]) };
    },
  }),
  defineNode({
    key: "SDTurboScheduler",
    category: "sampling/custom_sampling/schedulers",
    description: "Sigmas of the model at timesteps 999, 899, … of its turbo training, and 0.",
    inputs: {
      model: model(),
      steps: int({ default: 1, min: 1, max: 10 }),
      denoise: denoise(),
    },
    outputs: { SIGMAS: "SIGMAS" },
    run: ({ model, steps, denoise }) => {
      const skipped = 10 - Math.floor(10 * denoise);
      const timesteps = Array.from({ length: 10 }, (_, i) => 999 - 100 * i).slice(skipped, skipped + steps);
      const levels = timesteps.map((timestep) => model.sampling.sigma(timestep));
      return { SIGMAS: sigmasTensor([...levels, 0]) };
    },
  }),
  defineNode({
    key: "AlignYourStepsScheduler",
    category: "sampling/custom_sampling/schedulers",
    description: "Sigmas of Align Your Steps, interpolated log-linearly for other step counts than 10.",
    inputs: {
      model_type: choice(["SD1", "SDXL", "SVD"]),
      steps: int({ default: 10, min: 1, max: 10000 }),
      denoise: denoise(),
    },
    outputs: { SIGMAS: "SIGMAS" },
    run: ({ model_type, steps, denoise }) => {
      if (denoise === 0) return { SIGMAS: Tensor.zeros([0]) };
      const taken = denoise < 1 ? roundHalfEven(steps * denoise) : steps;
      const levels = interpolated(LEVELS[model_type], steps + 1).slice(-(taken + 1));
      levels[levels.length - 1] = 0;
      return { SIGMAS: sigmasTensor(levels) };
    },
  }),
  defineNode({
    key: "Flux2Scheduler",
    category: "sampling/custom_sampling/schedulers",
    description: "Sigmas of Flux.2, which stay high for longer in large pictures and few steps.",
    inputs: { steps: int({ default: 20, min: 1, max: 4096 }), width: side(), height: side() },
    outputs: { SIGMAS: "SIGMAS" },
    run: ({ steps, width, height }) => ({
      SIGMAS: sigmasTensor(flux2Sigmas(steps, (width * height) / PIXELS_OF_TOKEN)),
    }),
  }),
] as const;

/** Fails if one of these inputs is 0. */
function refuseZero(node: string, values: Readonly<Record<string, number>>): void {
  for (const [input, value] of Object.entries(values))
    if (value === 0) throw inputError("input.below-minimum", { node, input }, "a number above 0", value);
}

/** Smallest alpha and beta: below it all quantiles are 0 or 1, and 0 does not define a distribution. */
const LEAST = 1e-6;

// decisions: Some samplers and nodes are unchecked
/** Sabour et al. 2024, optimised for 10 steps. */
const LEVELS = {
  SD1: [
    14.6146412293, 6.4745760956, 3.8636745985, 2.694615152, 1.8841921177, 1.3943805092, 0.9642583904, 0.6523686016,
    0.3977456272, 0.1515232662, 0.0291671582,
  ],
  SDXL: [
    14.6146412293, 6.3184485287, 3.7681790315, 2.1811480769, 1.3405244945, 0.8620721141, 0.5550693289, 0.3798540708,
    0.2332364134, 0.1114188177, 0.0291671582,
  ],
  SVD: [700, 54.5, 15.886, 7.977, 4.248, 1.789, 0.981, 0.403, 0.173, 0.034, 0.002],
} as const;

/** Levels at `count` evenly spaced points of the table, linear in their logarithm. */
function interpolated(table: readonly number[], count: number): number[] {
  return Array.from({ length: count }, (_, i) => {
    const at = (i * (table.length - 1)) / (count - 1);
    const index = Math.min(Math.floor(at), table.length - 2);
    const share = at - index;
    const [from, to] = [table[index]!, table[index + 1]!];
    return share === 0 ? from : exp(log(from) + (log(to) - log(from)) * share);
  });
}
