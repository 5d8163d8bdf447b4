import { LatentkitError } from "../../../base/errors.js";
import { exp, log, square } from "../../../native/elementary.js";
import type { Term } from "../../../tensor/ops.js";
import { isFlow } from "../../../tensor/sampling/noise-level.js";
import type { Tensor } from "../../../tensor/tensor.js";
import type { Solver, SolverContext } from "../solver.js";
import { momentWeights, remember, requireOneOf, requireWhole, runMultistep, termsOf } from "./steps.js";

/** Linear multistep method with the exact integrals of Lagrange polynomials in sigma, as in k-diffusion. */
export const lms = adamsSolver("lms", "order", [1, 100], lagrangeWeights);

/** Adams-Bashforth coefficients of equal steps, by order, the newest derivative first. */
const EQUAL_STEPS = [[1], [3 / 2, -1 / 2], [23 / 12, -16 / 12, 5 / 12], [55 / 24, -59 / 24, 37 / 24, -9 / 24]] as const;

/** Improved pseudo linear multistep method: coefficients of equal steps for steps of any length (arXiv 2204.13902). */
export const ipndm = adamsSolver("ipndm", "max_order", [2, 4], (sigmas, index, order) =>
  EQUAL_STEPS[order - 1]!.map((weight) => weight * (sigmas[index + 1]! - sigmas[index]!)),
);

/** `ipndm` with coefficients for the steps' own lengths, as published: of orders 3 and 4 they are not Adams-Bashforth's. */
export const ipndmV = adamsSolver("ipndm_v", "max_order", [2, 4], (sigmas, index, order) =>
  variableWeights(Array.from({ length: order }, (_, back) => sigmas[index + 1 - back]! - sigmas[index - back]!)),
);

/** Weights of the derivatives at sigmas[index], sigmas[index - 1] …, `order` of them, for the step from there. */
type StepWeights = (sigmas: Float32Array, index: number, order: number) => readonly number[];

/** A linear multistep method of order 4 or another one of the range, by the option of that name. */
function adamsSolver<Name extends string>(
  sampler: string,
  option: Name,
  [min, max]: readonly [number, number],
  weights: StepWeights,
): Solver<Record<Name, number>> {
  return {
    noise: "none",
    options: { [option]: 4 } as Record<Name, number>,
    async sample(x, context, { [option]: order }) {
      requireWhole(`${sampler}, ${option}`, order, min, max);
      return adams(x, context, { order, weights: (index, used) => weights(context.sigmas, index, used) });
    },
  };
}

/** Weights of the derivatives, the newest first, from the lengths of the steps, this one first. */
function variableWeights([h, h1, h2, h3]: readonly number[]): number[] {
  const weights = [h!, 0, 0, 0];
  const add = (coefficient: number, difference: readonly number[]) => {
    for (const [i, share] of difference.entries()) weights[i]! += h! * coefficient * share;
  };
  if (h1 === undefined) return weights.slice(0, 1);
  add(h! / (2 * h1), [1, -1]);
  if (h2 === undefined) return weights.slice(0, 2);
  const two = h! + h1;
  const ratio = h1 / h2;
  // as published: an exact integral has the factor on the whole bracket, not only on the second part
  add((1 - ((h! / (3 * two)) * (h! * two)) / (h1 * (h1 + h2))) / 2, [1, -1 - ratio, ratio]);
  if (h3 === undefined) return weights.slice(0, 3);
  const three = two + h2;
  const length = (h! * two * three) / (h1 * (h1 + h2) * (h1 + h2 + h3));
  // as published: an exact integral subtracts the second part
  const third = (1 - h! / (3 * two)) / 2 + ((1 - h! / (2 * two)) * h!) / (6 * three);
  const chain = (h1 * (h1 + h2)) / (h2 * (h2 + h3));
  add(third * length, [1, -1 - ratio - chain, ratio + chain * (1 + h2 / h3), -chain * ratio]);
  return weights;
}

// decisions: Some samplers and nodes are unchecked
/**
 * CFG++ (arXiv 2406.08070) with a second-order Adams-Bashforth step: the guided estimate is the clean part, scaled as
 * the model scales its signal, and the negative side gives the direction of the noise. Only the sampler's name is
 * published with ComfyUI's list, so the method is this package's decision and unchecked against the reference.
 */
export const cfgppUd10Ab: Solver = {
  noise: "none",
  options: {},
  async sample(x, context) {
    const { sigmas, sampling } = context;
    return adams(x, context, {
      order: 2,
      separate: true,
      guidance: (next) => (isFlow(sampling) ? 1 - next : 1),
      weights: (index, order) => lagrangeWeights(sigmas, index, order),
    });
  },
};

interface GradientOptions {
  /** Weight of the newest derivative against the one before, 1 for Euler's method. */
  ge_gamma: number;
  /** Whether the derivative is that of the negative side. */
  cfg_pp?: boolean;
}

const gradientSolver = (options: GradientOptions, separate: boolean): Solver<GradientOptions> => ({
  noise: "none",
  options,
  async sample(x, context, { ge_gamma, cfg_pp = separate }) {
    const { sigmas } = context;
    return adams(x, context, {
      order: 2,
      separate: cfg_pp,
      weights: (index, order) => {
        const step = sigmas[index + 1]! - sigmas[index]!;
        return order === 1 ? [step] : [ge_gamma * step, (1 - ge_gamma) * step];
      },
    });
  },
});

/** Gradient estimation (arXiv 2306.04848): Euler's step along gamma * d + (1 - gamma) * the derivative before. */
export const gradientEstimation = gradientSolver({ ge_gamma: 2, cfg_pp: false }, false);

/** `gradientEstimation` along the derivative of the negative side, from the guided estimate. */
export const gradientEstimationCfgPp = gradientSolver({ ge_gamma: 2 }, true);

interface DeisOptions {
  max_order: number;
  /** tab: polynomials in variance-preserving time; rhoab: in sigma. */
  deis_mode: "tab" | "rhoab";
}

/** Diffusion exponential integrator sampler (arXiv 2204.13902), in tab and rhoab form. */
export const deis: Solver<DeisOptions> = {
  noise: "none",
  options: { max_order: 3, deis_mode: "tab" },
  async sample(x, context, { max_order, deis_mode }) {
    const { sigmas } = context;
    requireWhole("deis, max_order", max_order, 2, 4);
    requireOneOf("deis, deis_mode", deis_mode, ["tab", "rhoab"]);
    if (deis_mode === "rhoab" && max_order < 4 && sigmas.length > max_order + 1 && sigmas[max_order + 1]! > 0) {
      const message = `deis, max_order: expected 4 with deis_mode rhoab, received ${max_order}.`;
      throw new LatentkitError("value.out-of-range", message);
    }
    return adams(x, context, {
      order: max_order,
      weights: (index, order) => {
        if (order === 1) return [sigmas[index + 1]! - sigmas[index]!];
        if (deis_mode === "tab") return tabWeights(sigmas, index, order);
        // the published code has no rhoab weights of a fifth step: it repeats those of the fourth, and so does the reference
        return lagrangeWeights(sigmas, Math.min(index, 3), order);
      },
    });
  },
};

/** Variance-preserving time of the noise schedule that spans sigma 0.002 at time 0.001 to sigma 80 at time 1. */
// ln(sigma^2 + 1), written out: an import loads no native core
const [LOW, HIGH] = [3.999991999914312e-6, 8.764209507142004];
const BETA_SLOPE = (2 * (LOW / 0.001 - HIGH)) / (0.001 - 1);
const BETA_START = HIGH - BETA_SLOPE / 2;

/** Rate of the schedule, beta, at the time whose noise level is sigma. */
const betaOf = (sigma: number): number => Math.sqrt(square(BETA_START) + 2 * BETA_SLOPE * log(square(sigma) + 1));
const timeOf = (sigma: number): number => (betaOf(sigma) - BETA_START) / BETA_SLOPE;
/** Derivative of sigma by time. */
const sigmaRate = (sigma: number): number => ((square(sigma) + 1) * betaOf(sigma)) / (2 * sigma);

/** Points at which the published code samples the way of a step, both ends included. */
const POINTS = 10_000;
const PANELS = 16;
/** Gauss-Legendre points and weights of a panel from 0 to 1. */
const GAUSS = [
  [0.5 - Math.sqrt(0.15), 5 / 18],
  [0.5, 8 / 18],
  [0.5 + Math.sqrt(0.15), 5 / 18],
] as const;

/**
 * Weights of the derivatives at sigmas[index], sigmas[index - 1] …: Lagrange polynomials in variance-preserving time,
 * integrated over sigma. The published code adds the values at 10,000 points and multiplies by a 10,000th of the way:
 * the trapezoid rule and half the values at the ends. The integral stands for that rule, whose own error is below 3e-7 of
 * a weight from sigma 0.002 on.
 */
function tabWeights(sigmas: Float32Array, index: number, order: number): number[] {
  const [sigma, next] = [sigmas[index]!, sigmas[index + 1]!];
  const start = timeOf(sigma);
  const span = timeOf(next) - start;
  const share = (level: number) => (timeOf(level) - start) / span;
  const moments = new Array<number>(order).fill(0);
  const add = (value: number, at: number) => {
    for (let power = 0, term = value; power < order; power++, term *= at) moments[power]! += term;
  };
  // in log(sigma), where the integrand is smooth down to the smallest noise levels
  const width = log(next / sigma) / PANELS;
  for (let panel = 0; panel < PANELS; panel++) {
    for (const [offset, weight] of GAUSS) {
      const level = sigma * exp(width * (panel + offset));
      add((weight * width * level * (POINTS - 1)) / POINTS, share(level));
    }
  }
  add((sigmaRate(sigma) * span) / POINTS / 2, 0);
  add((sigmaRate(next) * span) / POINTS / 2, 1);
  const nodes = moments.map((_, back) => share(sigmas[index - back]!));
  return momentWeights(nodes, moments);
}

/** A linear multistep method. */
interface AdamsMethod {
  /** Number of derivatives that a step uses at most. */
  readonly order: number;
  /** Whether the derivative is that of the negative side (CFG++). */
  readonly separate?: boolean;
  /** Share of the difference between the estimates that a step to this noise level adds; 1 if absent. */
  readonly guidance?: (next: number) => number;
  /** Weights of the newest derivatives, the newest first, for the step from sigmas[index]. */
  weights(index: number, order: number): readonly number[];
}

/**
 * Explicit linear multistep method: x' = x + sum of weight * d + guidance * (denoised - uncond), with the derivative
 * d = (x - uncond) / sigma of the last steps.
 */
function adams(x: Tensor, context: SolverContext, method: AdamsMethod): Promise<Tensor> {
  const { order, separate, guidance = () => 1 } = method;
  const derivatives: Tensor[] = [];
  return runMultistep(x, context, {
    separate,
    kept: derivatives,
    advance: ({ index, sigma, next, x, denoised, uncond }) => {
      const derivative = context.combined([
        [1 / sigma, x],
        [-1 / sigma, uncond],
      ]);
      remember(derivatives, derivative, order);
      const terms: Term[] = [[1, x], ...termsOf(method.weights(index, derivatives.length), derivatives)];
      if (uncond !== denoised) terms.push([guidance(next), denoised], [-guidance(next), uncond]);
      return terms;
    },
  });
}

/** Weights of the derivatives at sigmas[index], sigmas[index - 1] …: integrals of their Lagrange polynomials. */
function lagrangeWeights(sigmas: Float32Array, index: number, order: number): number[] {
  const sigma = sigmas[index]!;
  const step = sigmas[index + 1]! - sigma;
  const nodes = Array.from({ length: order }, (_, back) => (sigmas[index - back]! - sigma) / step);
  const moments = nodes.map((_, power) => step / (power + 1));
  return momentWeights(nodes, moments);
}
