import { valueError } from "../../base/errors.js";
import { exp, expm1, log, square } from "../../native/elementary.js";
import { type ModelSampling, specOf } from "./model-sampling.js";

/** Whether latents are (1 - sigma) * clean + sigma * noise; else they are clean + sigma * noise. */
export const isFlow = ({ prediction }: ModelSampling): boolean => prediction === "flow";

/** Half the logarithm of the signal-to-noise ratio at sigma: log((1 - sigma) / sigma) of a flow, else -log(sigma). */
export const halfLogSnr = (sampling: ModelSampling, sigma: number): number =>
  isFlow(sampling) ? log((1 - sigma) / sigma) : -log(sigma);

/** Inverse of halfLogSnr. */
export const sigmaOfHalfLogSnr = (sampling: ModelSampling, lambda: number): number =>
  isFlow(sampling) ? 1 / (1 + exp(lambda)) : exp(-lambda);

/** Sigma above that of every model, so that sampling may begin at any noise level. */
const ABOVE_ALL = 999_999_999.9;

/**
 * Noise level at a share of the way from noise to image: above all levels up to 0 (1 for a flow), 0 from 1 on, else the
 * level of the timestep at that share, by the formula of the model's family.
 */
export function percentToSigma(sampling: ModelSampling, percent: number): number {
  if (percent <= 0) return isFlow(sampling) ? 1 : ABOVE_ALL;
  if (percent >= 1) return 0;
  const rest = 1 - percent;
  const spec = specOf(sampling);
  switch (spec?.kind) {
    case "flow":
      return (spec.shift * rest) / (1 + (spec.shift - 1) * rest);
    case "flux":
      return 1 / (1 + (1 / rest - 1) * exp(-spec.shift));
    case "edm":
      return exp(log(spec.sigmaMax) * rest + log(spec.sigmaMin) * percent);
    case "cascade":
      return sampling.sigma(rest);
    case "discrete":
      return sampling.sigma(rest * (sampling.sigmas.length - 1));
    default:
      return ofForeign(sampling, rest);
  }
}

/** `percentToSigma` as a border of a range: a float32, as levels of a schedule are, so that ranges share a step on it. */
export const borderAt = (sampling: ModelSampling, percent: number): number =>
  Math.fround(percentToSigma(sampling, percent));

/** The level of a sampling that modelSampling() did not make, by its own maps: a flow's timesteps begin at 0. */
function ofForeign(sampling: ModelSampling, rest: number): number {
  const first = isFlow(sampling) ? 0 : sampling.timestep(sampling.sigmaMin);
  return sampling.sigma(first + (sampling.timestep(sampling.sigmaMax) - first) * rest);
}

/** Noise levels whose first has a signal, for solvers that divide by it: a flow's level of 1 becomes that of 0.01 %. */
export function withSignal(sampling: ModelSampling, sigmas: Float32Array): Float32Array {
  if (!isFlow(sampling) || !(sigmas[0]! >= 1)) return sigmas;
  const replaced = sigmas.slice();
  replaced[0] = percentToSigma(sampling, 1e-4);
  return replaced;
}

/** Share of the clean latent at a noise level: 1 - sigma of a flow, else 1. */
export const signalOf = (sampling: ModelSampling, sigma: number): number => (isFlow(sampling) ? 1 - sigma : 1);

/** Weight of a constant estimate over a way h: 1 - exp(-h), which is h * phi_1(-h) of exponential integrators. */
export const firstWeight = (h: number): number => -expm1(-h);

/** Weight of an estimate that grows linearly over a way h, 0 to 1: h * phi_2(-h), which is 1 - (1 - exp(-h)) / h. */
export function secondWeight(h: number): number {
  // its series: the difference would cancel
  if (Math.abs(h) < 1e-4) return h / 2 - (h * h) / 6 + (h * h * h) / 24;
  return 1 + expm1(-h) / h;
}

/** A step that goes below the next noise level, to `down`, and back up to it by new noise. */
interface Down {
  readonly down: number;
  readonly up: number;
}

/** Such a step that returns to the next level by scale * x + up * noise. */
interface Ancestral extends Down {
  readonly scale: number;
}

/**
 * The ancestral step of clean + sigma * noise, as k-diffusion defines it: eta 0 adds no noise, 1 as much as the
 * reverse process has.
 */
export function ancestral(sigma: number, next: number, eta: number): Down {
  if (!eta) return { down: next, up: 0 };
  const up = upOf(sigma, next, eta);
  return up < next ? { down: Math.sqrt((next - up) * (next + up)), up } : { down: 0, up: next };
}

/**
 * `ancestral` with `up` in float32, as the reference has it: if next is small beside sigma, this leaves few digits of
 * `down`, which the noise level of a model call shows, or no digit and then no noise.
 */
export function ancestral32(sigma: number, next: number, eta: number): Down {
  if (!eta) return { down: next, up: 0 };
  const f = Math.fround;
  const up = f(upOf(sigma, next, eta));
  return up < next ? { down: Math.sqrt(f(f(next * next) - f(up * up))), up } : { down: 0, up: next };
}

/** Noise back up to the next level, in part; all of it for an infinite sigma, as a flow's of 1 beside its signal is. */
function upOf(sigma: number, next: number, eta: number): number {
  // with any eta, and for rising sigmas too, as in the reference
  if (!(sigma < Number.POSITIVE_INFINITY && sigma >= next)) return next;
  return eta * next * Math.sqrt(1 - square(next / sigma));
}

/** The ancestral step of a model: of a flow, eta of the way on to the ratio of both levels, as rectified flow has it. */
export function ancestralOf(sampling: ModelSampling, sigma: number, next: number, eta: number): Ancestral {
  if (!isFlow(sampling)) return { ...ancestral32(sigma, next, eta), scale: 1 };
  const down = next * (1 + (next / sigma - 1) * eta);
  const scale = (1 - next) / (1 - down);
  // next^2 - (down * scale)^2, in factors that do not cancel
  const variance = ((next - down) / (1 - down)) * (next + down * scale);
  if (variance >= 0) return { down, up: Math.sqrt(variance), scale };
  const expected = "falling sigmas, and an eta that leaves no negative variance";
  throw valueError("value.out-of-range", `Ancestral step from sigma ${sigma} to ${next}`, expected, eta);
}
