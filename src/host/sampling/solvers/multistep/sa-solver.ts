import { exp, expm1, square } from "../../../../native/elementary.js";
import type { Term } from "../../../../tensor/ops.js";
import type { ModelSampling } from "../../../../tensor/sampling/model-sampling.js";
import { halfLogSnr } from "../../../../tensor/sampling/noise-level.js";
import { percentToSigma, withSignal } from "../../../../tensor/sampling/percent-to-sigma.js";
import type { Tensor } from "../../../../tensor/tensor.js";
import type { Solver, SolverContext } from "../../solver.js";
import { requireWhole } from "./checks.js";
import { remember, termsOf } from "./run.js";
import { simpleCorrector, simplePredictor, stochasticWeights } from "./stochastic-adams.js";

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
