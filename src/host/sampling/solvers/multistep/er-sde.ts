import { exp, pow, square } from "../../../../native/elementary.js";
import type { Term } from "../../../../tensor/ops.js";
import { halfLogSnr } from "../../../../tensor/sampling/noise-level.js";
import { withSignal } from "../../../../tensor/sampling/percent-to-sigma.js";
import type { Solver } from "../../solver.js";
import { requireWhole } from "./checks.js";
import { run, termsOf } from "./run.js";

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
    return run(x, context, {
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
