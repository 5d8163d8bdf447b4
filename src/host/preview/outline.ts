/** Most that ripples move what they mirror, as a part of a picture's height. */
const MARGIN = 0.03;

/** A line across a landscape, computed at each column and between them straight. */
export class Outline {
  readonly #heights: Float64Array;
  readonly #left: number;

  constructor(
    at: (x: number) => number,
    private readonly rows: number,
    columns: number,
  ) {
    this.#left = MARGIN * rows + columns / 2;
    this.#heights = Float64Array.from({ length: Math.ceil(2 * this.#left) + 2 }, (_, i) => at((i - this.#left) / rows));
  }

  /** Height at a place up to MARGIN beside the picture. */
  at(x: number): number {
    const place = Math.max(0, x * this.rows + this.#left);
    const before = Math.min(Math.floor(place), this.#heights.length - 2);
    const from = this.#heights[before]!;
    return from + (this.#heights[before + 1]! - from) * (place - before);
  }
}

/** Rises smoothly from 0 at `from` to 1 over a width. */
export function within(value: number, from: number, width: number): number {
  const t = Math.min(1, Math.max(0, (value - from) / width));
  return t * t * (3 - 2 * t);
}

/** Outline of hills in 0 … 1, of waves of falling length and height. */
export function ridge(x: number, salt: number): number {
  let [sum, height, scale] = [0, 0.5, 1];
  for (let octave = 0; octave < 4; octave++) {
    sum += height * noise(x * scale, salt * 7 + octave);
    height *= 0.5;
    scale *= 2.1;
  }
  return sum;
}

/** Smooth noise along a line, in 0 … 1. */
export function noise(x: number, salt: number): number {
  const before = Math.floor(x);
  const t = x - before;
  const [from, to] = [chance(before, salt), chance(before + 1, salt)];
  return from + (to - from) * t * t * (3 - 2 * t);
}

/** A number in 0 … 1 that follows from two whole numbers. */
export function chance(at: number, salt: number): number {
  let bits = Math.imul(at, 0x9e3779b1) ^ Math.imul(salt + 1, 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 15), 0x2c1b3c6d);
  bits = Math.imul(bits ^ (bits >>> 12), 0x297a2d39);
  return ((bits ^ (bits >>> 15)) >>> 0) / 2 ** 32;
}
