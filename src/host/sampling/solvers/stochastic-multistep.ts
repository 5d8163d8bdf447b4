import { exp, expm1, pow, square } from "../../../native/elementary.js";
import type { Term } from "../../../tensor/ops.js";
import type { ModelSampling } from "../../../tensor/sampling/model-sampling.js";
import { halfLogSnr, percentToSigma, withSignal } from "../../../tensor/sampling/noise-level.js";
import type { Tensor } from "../../../tensor/tensor.js";
import type { Solver, SolverContext } from "../solver.js";
import { momentWeights, remember, requireWhole, runMultistep, termsOf } from "./steps.js";

type NoiseScaler = (lambda: number) => number;

interface ErSdeOptions {
  s_noise: number;
  /** Growth of the noise with lambda = sigma / signal; null for the paper's fifth choice. */
  noise_scaler: NoiseScaler | null;
  /** Order of a step at most, 1 … 3. */
  max_stage: number;
}

const POINTS = 200;

/** Noise scale of the best sampler of the paper. */
const defaultScaler: NoiseScaler = (lambda) => lambda * (exp(pow(lambda, 0.3)) + 10);

/** Extended reverse-time SDE solver (arXiv 2309.06169), in lambda = sigma / signal. */
export const erSde: Solver<ErSdeOptions> = {
  noise: "stream",
  options: { s_noise: 1, noise_scaler: null, max_stage: 3 },
  async sample(x, context, { s_noise, noise_scaler, max_stage }) {
    requireWhole("er_sde, max_stage", max_stage, 1, 3);
    const scaler = noise_scaler ?? defaultScaler;
    const sigmas = withSignal(context.sampling, context.sigmas);
    const lambdas = Array.from(sigmas, (sigma) => exp(-halfLogSnr(context.sampling, sigma)));
    return runMultistep(x, context, {
      sigmas,
      order: max_stage,
      advance: ({ index, sigma, next, x, estimates }) => {
        const [from, to] = [lambdas[index]!, lambdas[index + 1]!];
        const signal = next / to;
        const ratio = scaler(to) / scaler(from);
        const newest = lambdas.slice(Math.max(0, index - 2), index + 1).reverse();
        const coefficients = estimateWeights(newest.slice(0, estimates.length), to, scaler);
        const terms: Term[] = [
          [((signal * from) / sigma) * ratio, x],
          ...termsOf(coefficients, estimates).map(([weight, one]): Term => [signal * weight, one]),
        ];
        if (s_noise > 0) {
          const deviation = Math.sqrt(Math.max(0, square(to) - square(from * ratio)));
          terms.push([signal * s_noise * deviation, context.noise(sigma, next)]);
        }
        return terms;
      },
    });
  },
};

/** Weights of the estimates at `lambdas`, the newest first, for a step from there to `to`, without the signal. */
function estimateWeights(lambdas: readonly number[], to: number, scaler: NoiseScaler): number[] {
  const [from, l1, l2] = lambdas as [number, number?, number?];
  const scale = scaler(to);
  const constant = 1 - scale / scaler(from);
  if (l1 === undefined) return [constant];
  const [inverse, linear] = scalerIntegrals(from, to, scaler);
  const first = to - from + inverse * scale;
  if (l2 === undefined) return [constant + first / (from - l1), -first / (from - l1)];
  const second = (2 * (square(to - from) / 2 + linear * scale)) / (from - l2);
  // the second derivative is the difference of two slopes
  const newer = (first + second) / (from - l1);
  const older = second / (l1 - l2);
  return [constant + newer, -newer - older, older];
}

/** Integrals of 1 / scaler(l) and (l - from) / scaler(l) from `to` to `from`: sums at 200 points, from `to` on. */
function scalerIntegrals(from: number, to: number, scaler: NoiseScaler): [inverse: number, linear: number] {
  const width = (from - to) / POINTS;
  let [inverse, linear] = [0, 0];
  for (let point = 0; point < POINTS; point++) {
    const lambda = to + point * width;
    const share = width / scaler(lambda);
    inverse += share;
    linear += (lambda - from) * share;
  }
  return [inverse, linear];
}

interface SaOptions {
  /** Share of the noise that a step to sigma renews; null for 1 between 20 and 80 % of the way. */
  tau_func: ((sigma: number) => number) | null;
  s_noise: number;
  predictor_order: number;
  /** 0 leaves the corrector out. */
  corrector_order: number;
  /** Whether the model is called again with the corrected latent. */
  use_pece?: boolean;
  simple_order_2: boolean;
}

const HIGHEST_ORDER = 6;

const saSolverOf = (name: string, options: SaOptions, pece: boolean): Solver<SaOptions> => ({
  noise: "stream",
  options,
  async sample(x, context, chosen) {
    requireWhole(`${name}, predictor_order`, chosen.predictor_order, 1, HIGHEST_ORDER);
    requireWhole(`${name}, corrector_order`, chosen.corrector_order, 0, HIGHEST_ORDER);
    return new StochasticAdams(context, { use_pece: pece, ...chosen }).run(x);
  },
});

/** SA-Solver (arXiv 2309.05019): stochastic Adams predictor and corrector, of lower order at both ends. */
class StochasticAdams {
  readonly #context: SolverContext;
  readonly #options: SaOptions;
  readonly #sigmas: Float32Array;
  readonly #lambdas: readonly number[];
  readonly #tau: (sigma: number) => number;
  /** Newest estimates, the newest first. */
  readonly #estimates: Tensor[] = [];
  /** Share and scaled noise of the last predictor, which the corrector repeats. */
  #last: { readonly tau: number; readonly noise: readonly Term[] } = { tau: 0, noise: [] };

  constructor(context: SolverContext, options: SaOptions) {
    this.#context = context;
    this.#options = options;
    this.#sigmas = withSignal(context.sampling, context.sigmas);
    this.#lambdas = Array.from(this.#sigmas, (sigma) => halfLogSnr(context.sampling, sigma));
    this.#tau = options.tau_func ?? middleOf(context.sampling);
  }

  async run(x: Tensor): Promise<Tensor> {
    const { predictor_order, corrector_order, use_pece } = this.#options;
    const sigmas = this.#sigmas;
    let predicted = x;
    let latent = x;
    for (let index = 0; index + 1 < sigmas.length; index++) {
      const sigma = sigmas[index]!;
      const denoised = await this.#context.denoise(predicted, sigma);
      remember(this.#estimates, denoised, Math.max(predictor_order, corrector_order));
      const order = this.#correctorOrder(index);
      latent = order === 0 ? predicted : this.#correct(latent, index, order);
      if (order > 0 && use_pece) this.#estimates[0] = await this.#context.denoise(latent, sigma);
      this.#context.report(index, this.#estimates[0]!);
      predicted = sigmas[index + 1] === 0 ? this.#estimates[0]! : this.#predict(latent, index);
      const noise = this.#last.noise.map(([, noise]) => noise);
      this.#context.keepOnly([predicted, latent, ...this.#estimates, ...noise]);
    }
    // a window that does not end in 0 ends with the last corrected latent, as the reference's: one noise level early
    return sigmas.at(-1) === 0 ? predicted : latent;
  }

  #correctorOrder(index: number): number {
    if (index === 0 || (this.#sigmas[index + 1] === 0 && !this.#options.use_pece)) return 0;
    return this.#limited(this.#options.corrector_order, this.#sigmas.length - 1 - index);
  }

  /** The order, at most that of the estimates there are and, on the way to 0, of the steps that are left. */
  #limited(order: number, left: number): number {
    return Math.min(order, this.#estimates.length, this.#sigmas.at(-1) === 0 ? left : order);
  }

  #correct(latent: Tensor, index: number, order: number): Tensor {
    const [from, to] = [this.#lambdas[index - 1]!, this.#lambdas[index]!];
    const step = { from, to, tau: this.#last.tau };
    const simple = this.#options.simple_order_2 && order === 2;
    const weights = simple ? simpleCorrector(step) : stochasticWeights(step, this.#newest(index, order));
    const terms = this.#terms(latent, index, step.tau, weights);
    return this.#options.use_pece ? this.#context.sum(terms) : this.#context.combined(terms);
  }

  #predict(latent: Tensor, index: number): Tensor {
    const [from, to] = [this.#lambdas[index]!, this.#lambdas[index + 1]!];
    const [sigma, next] = [this.#sigmas[index]!, this.#sigmas[index + 1]!];
    const order = this.#limited(this.#options.predictor_order, this.#sigmas.length - 2 - index);
    const step = { from, to, tau: this.#tau(next) };
    const lambdas = this.#newest(index, order);
    const simple = this.#options.simple_order_2 && order === 2;
    const weights = simple ? simplePredictor(step, lambdas) : stochasticWeights(step, lambdas);
    const renews = step.tau > 0 && this.#options.s_noise > 0;
    const deviation = next * Math.sqrt(-expm1(-2 * square(step.tau) * (to - from))) * this.#options.s_noise;
    this.#last = { tau: step.tau, noise: renews ? [[deviation, this.#context.noise(sigma, next)]] : [] };
    return this.#context.sum(this.#terms(latent, index + 1, step.tau, weights));
  }

  #newest(index: number, order: number): number[] {
    return this.#lambdas.slice(index - order + 1, index + 1).reverse();
  }

  /** Terms of the latent at sigmas[index] from the one before, by the weights of the newest estimates. */
  #terms(latent: Tensor, index: number, tau: number, weights: readonly number[]): Term[] {
    const [sigma, next] = [this.#sigmas[index - 1]!, this.#sigmas[index]!];
    const lambda = this.#lambdas[index]!;
    const h = lambda - this.#lambdas[index - 1]!;
    const signal = next * exp(lambda);
    const scaled = weights.map((weight) => signal * weight);
    const decay = (next / sigma) * exp(-square(tau) * h);
    return [[decay, latent], ...termsOf(scaled, this.#estimates), ...this.#last.noise];
  }
}

/** 1 for noise levels from 20 to 80 % of the way, else 0. */
function middleOf(sampling: ModelSampling): (sigma: number) => number {
  const [start, end] = [percentToSigma(sampling, 0.2), percentToSigma(sampling, 0.8)];
  return (sigma) => (sigma <= start && sigma >= end ? 1 : 0);
}

const DEFAULTS = { tau_func: null, s_noise: 1, predictor_order: 3, corrector_order: 4, simple_order_2: false } as const;

export const saSolver = saSolverOf("sa_solver", { ...DEFAULTS, use_pece: false }, false);
export const saSolverPece = saSolverOf("sa_solver_pece", DEFAULTS, true);

/** Way of a stochastic Adams step in lambda, half the logarithm of the signal-to-noise ratio. */
export interface AdamsStep {
  readonly from: number;
  readonly to: number;
  /** Share of the noise that the step renews. */
  readonly tau: number;
}

/**
 * Weights of the estimates at `lambdas`, in units of the signal at the step's end: integrals of Lagrange polynomials
 * times (1 + tau^2) * exp((1 + tau^2) * (lambda - to)), as in SA-Solver (arXiv 2309.05019).
 */
function stochasticWeights({ from, to, tau }: AdamsStep, lambdas: readonly number[]): number[] {
  const h = to - from;
  const nodes = lambdas.map((lambda) => (lambda - to) / h);
  return momentWeights(nodes, exponentialMoments((1 + tau * tau) * h, nodes.length));
}

/** The published simplification of the predictor of order 2: weights of the estimates at lambdas[0], the newest, and [1]. */
function simplePredictor({ from, to, tau }: AdamsStep, [, before]: readonly number[]): number[] {
  const h = to - from;
  const rate = 1 + tau * tau;
  const older = (0.5 * rate * h * h) / (before! - from);
  return [-expm1(-h * rate) - older, older];
}

/** The published simplification of the corrector of order 2, from the estimates at the step's end and start. */
function simpleCorrector({ from, to, tau }: AdamsStep): number[] {
  const h = to - from;
  const rate = 1 + tau * tau;
  const newest = 0.5 * rate * h;
  return [newest, -expm1(-h * rate) - newest];
}

/** Integrals of c * exp(c * v) * v^p from -1 to 0, for p from 0. */
function exponentialMoments(c: number, count: number): number[] {
  // by parts each moment follows from the one before, which cancels if c is small against p
  const rest = exp(-c);
  const moments = [-expm1(-c)];
  for (let p = 1; p < count; p++) {
    moments.push(Math.abs(c) < p ? momentSeries(c, p) : (p % 2 === 0 ? -rest : rest) - (p / c) * moments[p - 1]!);
  }
  return moments;
}

/** The same integral as a series of exp, which converges fast for c up to a few. */
function momentSeries(c: number, p: number): number {
  let power = c;
  let sum = 0;
  for (let k = 0; k < 40; k++) {
    sum += power / (p + k + 1);
    power *= -c / (k + 1);
  }
  return p % 2 === 0 ? sum : -sum;
}
