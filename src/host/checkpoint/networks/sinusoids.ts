import { cos, exp, log, sin } from "../../../native/elementary.js";

/** Longest period of an embedding. */
const MAX_PERIOD = 10_000;

/** The falling frequencies of an embedding of 2 * count numbers. */
export function embeddingFrequencies(count: number): Float32Array {
  // in float32 at each step as in the source: a late rounding is 2e-5 in the angle of timestep 999
  const slope = Math.fround(-log(MAX_PERIOD));
  return Float32Array.from({ length: count }, (_, i) => exp(Math.fround(Math.fround(slope * i) / count)));
}

/** Embedding of a number in `width` numbers: cosines, then sines, at falling frequencies. Vaswani et al. 2017. */
export function sinusoids(value: number, width: number): number[] {
  const angles = Array.from(embeddingFrequencies(width / 2), (frequency) => Math.fround(value * frequency));
  return [...angles.map(cos), ...angles.map(sin)];
}
