import { cos, exp, log, pow, sin } from "../../../native/elementary.js";
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

/** Embeddings [n, 256] of times as transformers take them, with the bits of PyTorch; angles are then times `factor`. */
export function timeEmbeddings(times: readonly number[], factor = 1): Tensor {
  const frequencies = embeddingFrequencies(TIME_EMBEDDING / 2);
  new Uint32Array(frequencies.buffer)[ROUNDED_UP]! += 1;
  return Tensor.from(
    times.flatMap((time) => sinusoidsAt(time, frequencies, factor)),
    [times.length, TIME_EMBEDDING],
  );
}

function sinusoidsAt(value: number, frequencies: Float32Array, factor = 1): number[] {
  const angles = Array.from(frequencies, (frequency) => Math.fround(Math.fround(value * frequency) * factor));
  return [...angles.map(cos), ...angles.map(sin)];
}

/** Position of a token on each axis. */
export type Position = readonly number[];

/** The tables of a rotation, as a graph takes them. */
export interface RotationTables {
  /** Each [positions, sum of axes / 2]. */
  readonly cos: Tensor;
  readonly sin: Tensor;
}

/**
 * Cosines and sines of rotary embeddings with several axes, side by side: pair j of an axis of `size` numbers turns by
 * position · theta^(-2j / size). Computed in double precision and rounded once.
 */
export function rotationTables(positions: readonly Position[], axes: readonly number[], theta: number): RotationTables {
  const width = axes.reduce((sum, size) => sum + size / 2, 0);
  const tables = { cos: Tensor.zeros([positions.length, width]), sin: Tensor.zeros([positions.length, width]) };
  let at = 0;
  for (const [axis, size] of axes.entries()) {
    const frequencies = Array.from({ length: size / 2 }, (_, j) => pow(theta, (-2 * j) / size));
    // positions are few, tokens are many
    const angles = new Map<number, readonly (readonly [cos: number, sin: number])[]>();
    for (const [row, position] of positions.entries()) {
      const place = position[axis]!;
      let each = angles.get(place);
      if (each === undefined) {
        each = frequencies.map((frequency) => [cos(place * frequency), sin(place * frequency)]);
        angles.set(place, each);
      }
      for (const [j, pair] of each.entries())
        [tables.cos.data[row * width + at + j], tables.sin.data[row * width + at + j]] = pair;
    }
    at += size / 2;
  }
  return tables;
}

/** The tables of a rotation whose pairs, as one list of frequencies, turn by one axis after the other: `sections` of them. */
export function sectionedTables(
  positions: readonly Position[],
  sections: readonly number[],
  theta: number,
): RotationTables {
  const pairs = sections.reduce((sum, count) => sum + count, 0);
  const byAxis = sections.map((_, axis) =>
    rotationTables(
      positions.map((position) => [position[axis]!]),
      [2 * pairs],
      theta,
    ),
  );
  const axisOf = sections.flatMap((count, axis) => new Array<number>(count).fill(axis));
  const table = (name: keyof RotationTables): Tensor => {
    const out = Tensor.unfilled([positions.length, pairs]);
    for (let i = 0; i < out.size; i++) out.data[i] = byAxis[axisOf[i % pairs]!]![name].data[i]!;
    return out;
  };
  return { cos: table("cos"), sin: table("sin") };
}
