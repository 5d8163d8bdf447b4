import { cos, exp, log, sin } from "../../../native/elementary.js";
import { Tensor } from "../../../tensor/tensor.js";

/** Longest period of an embedding. */
const MAX_PERIOD = 10_000;
/** Numbers of a transformer's embedded time. */
export const TIME_EMBEDDING = 256;
/** The one of its 128 frequencies that PyTorch rounds up from 0.479 of a bit: with a guidance of 30 the bit is 2e-5 of v. */
const ROUNDED_UP = 12;

/** The falling frequencies of an embedding of 2 * count numbers. */
export function embeddingFrequencies(count: number): Float32Array {
  // in float32 at each step as in the source: a late rounding is 2e-5 in the angle of timestep 999
  const slope = Math.fround(-log(MAX_PERIOD));
  return Float32Array.from({ length: count }, (_, i) => exp(Math.fround(Math.fround(slope * i) / count)));
}

/** Embedding of a number in `width` numbers: cosines, then sines, at falling frequencies. Vaswani et al. 2017. */
export function sinusoids(value: number, width: number): number[] {
  return sinusoidsAt(value, embeddingFrequencies(width / 2));
}

/** Embeddings [n, 256] of times as transformers take them, with the bits of PyTorch. */
export function timeEmbeddings(times: readonly number[]): Tensor {
  const frequencies = embeddingFrequencies(TIME_EMBEDDING / 2);
  new Uint32Array(frequencies.buffer)[ROUNDED_UP]! += 1;
  return Tensor.from(
    times.flatMap((time) => sinusoidsAt(time, frequencies)),
    [times.length, TIME_EMBEDDING],
  );
}

function sinusoidsAt(value: number, frequencies: Float32Array): number[] {
  const angles = Array.from(frequencies, (frequency) => Math.fround(value * frequency));
  return [...angles.map(cos), ...angles.map(sin)];
}
