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

/** Sum of the products of two planes, the second of which begins at `from`. */
export function dot(plane: Float64Array, other: Float64Array | Float32Array, from = 0): number {
  let sum = 0;
  for (let i = 0; i < plane.length; i++) sum += plane[i]! * other[from + i]!;
  return sum;
}

/** Adds a multiple of a plane to another. */
export function addTo(target: Float64Array, plane: Float64Array, factor: number): void {
  for (let i = 0; i < plane.length; i++) target[i]! += factor * plane[i]!;
}
