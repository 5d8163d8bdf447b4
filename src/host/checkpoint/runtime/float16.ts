import { halfValue } from "../../../io/safetensors/read.js";

/** Values of binary16 numbers, exactly. */
export const fromHalves = (halves: Uint16Array): Float32Array => Float32Array.from(halves, halfValue);

/** The nearest binary16 numbers, ties to even. */
export function toHalves(values: Float32Array): Uint16Array {
  const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
  return Uint16Array.from(words, halfOf);
}

/** Binary16 number nearest to a binary32 number: 8 bits of exponent become 5, 23 of fraction 10. */
function halfOf(word: number): number {
  const sign = (word >>> 16) & 0x8000;
  const exponent = ((word >>> 23) & 255) - 112;
  const fraction = word & 0x7fffff;
  if (exponent === 143) return sign | (fraction === 0 ? 0x7c00 : 0x7e00);
  if (exponent >= 31) return sign | 0x7c00;
  if (exponent < -10) return sign;
  // numbers below 2^-14 have no leading one of their own; a carry goes into the exponent, as it must
  if (exponent <= 0) return sign | shiftedToEven(fraction | 0x800000, 14 - exponent);
  return sign | shiftedToEven((exponent << 23) | fraction, 13);
}

function shiftedToEven(bits: number, shift: number): number {
  const half = bits >>> shift;
  const rest = bits & ((1 << shift) - 1);
  const tie = 1 << (shift - 1);
  return rest > tie || (rest === tie && (half & 1) === 1) ? half + 1 : half;
}
