import { exp, log } from "../../native/elementary.js";

/** Standard deviations, in a cell, of the colour of a pigment and of the texture. */
const COLOUR_SPREAD = 0.13;
const TEXTURE_SPREAD = 0.035;

/** One Gaussian over latents: a landscape in colours that vary, with a texture. */
export interface Component {
  readonly basis: Basis;
  /** Mean amplitudes by channel, and their variance in every channel. */
  readonly centre: readonly Float64Array[];
  readonly variance: Float64Array;
}

/** The Gaussian of a layout in the colours of its pigments, by channel; `spread` multiplies how far these vary. */
export function componentOf(basis: Basis, colours: readonly (readonly number[])[], spread: number): Component {
  const { planes, amplitudes } = basis;
  const centre = colours.map((levels) => {
    const sum = new Float64Array(planes.length);
    for (const [pigment, amplitude] of amplitudes.entries())
      for (let i = 0; i < sum.length; i++) sum[i]! += levels[pigment]! * amplitude[i]!;
    return sum;
  });
  const variance = new Float64Array(planes.length);
  for (const amplitude of amplitudes) {
    for (let i = 0; i < variance.length; i++) {
      const deviation = spread * COLOUR_SPREAD * amplitude[i]!;
      variance[i]! += deviation * deviation;
    }
  }
  return { basis, centre, variance };
}

/** Latents of one item, by channel, from a place of each in an array on. */
export interface Item {
  readonly values: Float32Array | Float64Array;
  readonly starts: readonly number[];
}

/** Amplitudes of an item in the basis of a component, by channel. */
export const amplitudesOf = ({ values, starts }: Item, { basis }: Component): Float64Array[] =>
  starts.map((start) => Float64Array.from(basis.planes, (plane) => dot(plane, values, start)));

/** Weights of components of equal shares for item = keep * clean + sigma * noise. */
export function weightsOf(
  components: readonly Component[],
  amplitudes: readonly (readonly Float64Array[])[],
  keep: number,
  sigma: number,
): number[] {
  if (components.length === 1) return [1];
  const noise = sigma * sigma;
  const texture = TEXTURE_SPREAD * TEXTURE_SPREAD * keep * keep + noise;
  const logs = components.map(({ centre, variance }, k) => {
    let sum = 0;
    for (const [channel, own] of amplitudes[k]!.entries()) {
      for (let i = 0; i < own.length; i++) {
        const [difference, spread] = [own[i]! - keep * centre[channel]![i]!, variance[i]! * keep * keep + noise];
        // what is in the basis is not in the texture
        sum -= 0.5 * ((difference * difference) / spread + log(spread / texture) - (own[i]! * own[i]!) / texture);
      }
    }
    return sum;
  });
  const most = Math.max(...logs);
  const weights = logs.map((value) => exp(value - most));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => weight / sum);
}

/** Gain of the texture, which no basis has. */
export const textureGain = (keep: number, sigma: number): number =>
  gainOf(TEXTURE_SPREAD * TEXTURE_SPREAD, keep, sigma * sigma);

/**
 * Amplitudes that the mean of the clean latents has beyond the gain of the texture, where `own` are those of the latents
 * in one channel.
 */
export function shiftOf(
  { centre, variance }: Component,
  channel: number,
  own: Float64Array,
  keep: number,
  sigma: number,
): Float64Array {
  const texture = textureGain(keep, sigma);
  return own.map((value, i) => {
    const middle = centre[channel]![i]!;
    return middle + gainOf(variance[i]!, keep, sigma * sigma) * (value - keep * middle) - texture * value;
  });
}

const gainOf = (variance: number, keep: number, noise: number): number =>
  (variance * keep) / (variance * keep * keep + noise);

/** Orthonormal planes of cells that span some planes. */
export interface Basis {
  /** [planes, cells] */
  readonly planes: readonly Float64Array[];
  /** Amplitudes of each spanned plane, [spanned, planes]. */
  readonly amplitudes: readonly Float64Array[];
}

/** Planes whose rest is shorter depend on those before them. */
const SHORTEST = 1e-3;

/** The basis that Gram and Schmidt's method makes of planes, in their order. */
export function basisOf(spanned: readonly Float64Array[]): Basis {
  const planes: Float64Array[] = [];
  for (const plane of spanned) {
    const rest = plane.slice();
    for (const own of planes) addTo(rest, own, -dot(rest, own));
    const length = Math.sqrt(dot(rest, rest));
    if (length < SHORTEST) continue;
    for (let i = 0; i < rest.length; i++) rest[i]! /= length;
    planes.push(rest);
  }
  return { planes, amplitudes: spanned.map((plane) => Float64Array.from(planes, (own) => dot(plane, own))) };
}

/** Sum of the products of two planes, the second of which begins at `from`. @internal */
export function dot(plane: Float64Array, other: Float64Array | Float32Array, from = 0): number {
  let sum = 0;
  for (let i = 0; i < plane.length; i++) sum += plane[i]! * other[from + i]!;
  return sum;
}

/** Adds a multiple of a plane to another. */
export function addTo(target: Float64Array, plane: Float64Array, factor: number): void {
  for (let i = 0; i < plane.length; i++) target[i]! += factor * plane[i]!;
}
