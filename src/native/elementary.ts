// Elementary functions in double of the native core: those of Math are left to each engine, and V8 changes their last bits
// between versions. scripts/check-layers.mjs refuses Math's elsewhere in src. Angles are in radians.
import { loadNative } from "./load.js";

/** Power of e. */
export const exp = (x: number): number => loadNative().exp(x);
/** Power of e, less 1, exact near 0. */
export const expm1 = (x: number): number => loadNative().expm1(x);
/** Natural logarithm: NaN below 0, -Infinity at 0. */
export const log = (x: number): number => loadNative().log(x);
/** Natural logarithm of 1 + x, exact near 0. */
export const log1p = (x: number): number => loadNative().log1p(x);
/** Power y of x: NaN below 0 unless y is whole. */
export const pow = (x: number, y: number): number => loadNative().pow(x, y);
/** Second power, rounded once. */
export const square = (x: number): number => x * x;
/** Sine. */
export const sin = (x: number): number => loadNative().sin(x);
/** Cosine. */
export const cos = (x: number): number => loadNative().cos(x);
/** Tangent. */
export const tan = (x: number): number => loadNative().tan(x);
/** Arctangent, -pi/2 … pi/2. */
export const atan = (x: number): number => loadNative().atan(x);
