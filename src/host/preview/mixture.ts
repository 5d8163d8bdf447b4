import { exp } from "../../native/elementary.js";
import type { Waves } from "./cosines.js";

/** Standard deviation of a cell around its mean that the lowest wave contributes, and all that the waves lack. */
const WAVE_SPREAD = 0.15;
const REST_SPREAD = 0.04;

/** A mixture of Gaussians over amplitudes of waves: centres by component and channel, one variance for each wave. */
export interface Prior {
  readonly centres: readonly (readonly Float64Array[])[];
  readonly variance: Float64Array;
}

/** Components of equal shares with these centres; `spread` multiplies their standard deviations. */
export function priorOf(
  centres: readonly (readonly Float64Array[])[],
  spread: number,
  down: Waves,
  across: Waves,
): Prior {
  const variance = new Float64Array(down.count * across.count);
  for (let i = 0; i < variance.length; i++) {
    const [u, v] = [i % across.count, Math.floor(i / across.count)];
    const frequency = Math.sqrt(u * u + v * v);
    // amplitudes of natural pictures fall like this
    const fall = (1 + frequency) * Math.sqrt(1 + frequency);
    const deviation = (spread * WAVE_SPREAD * Math.sqrt(down.cells * across.cells)) / fall;
    variance[i] = deviation * deviation;
  }
  return { centres, variance };
}

/**
 * Means of the clean amplitudes where waves = keep * clean + sigma * noise, by channel, and the gain of everything that
 * has no wave here.
 */
export function posterior(
  waves: readonly Float64Array[],
  { centres, variance }: Prior,
  keep: number,
  sigma: number,
): { means: Float64Array[]; rest: number } {
  const noise = sigma * sigma;
  const weights = normalised(centres.map((centre) => logDensity(waves, centre, variance, keep, noise)));
  const means = waves.map((wave) => new Float64Array(wave.length));
  for (const [k, weight] of weights.entries()) {
    if (weight === 0) continue;
    for (const [channel, wave] of waves.entries()) {
      const [centre, mean] = [centres[k]![channel]!, means[channel]!];
      for (let i = 0; i < wave.length; i++) {
        const gain = (variance[i]! * keep) / (variance[i]! * keep * keep + noise);
        mean[i]! += weight * (centre[i]! + gain * (wave[i]! - keep * centre[i]!));
      }
    }
  }
  const rest = REST_SPREAD * REST_SPREAD;
  return { means, rest: (rest * keep) / (rest * keep * keep + noise) };
}

/** Logarithm of a component's density, less what is equal in all components. */
function logDensity(
  waves: readonly Float64Array[],
  centre: readonly Float64Array[],
  variance: Float64Array,
  keep: number,
  noise: number,
): number {
  let sum = 0;
  for (let i = 0; i < variance.length; i++) {
    let distance = 0;
    for (let channel = 0; channel < waves.length; channel++) {
      const difference = waves[channel]![i]! - keep * centre[channel]![i]!;
      distance += difference * difference;
    }
    sum -= (0.5 * distance) / (variance[i]! * keep * keep + noise);
  }
  return sum;
}

/** Weights that add up to 1 from their logarithms. */
function normalised(logs: readonly number[]): number[] {
  const most = Math.max(...logs);
  const weights = logs.map((log) => exp(log - most));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => weight / sum);
}
