/** Rounds to the nearest whole number, halves to the even one, as Python and PyTorch do; Math.round rounds them up. */
export function roundHalfEven(x: number): number {
  const rounded = Math.round(x);
  return rounded - x === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
}

const MICRO = 1e6;
/** From here on neighbouring doubles are further apart than millionths: each is its own nearest decimal. */
const COARSE = 2 ** 33;
/** Splits a double into two of 26 bits. */
const SPLITTER = 2 ** 27 + 1;

/**
 * Time rounded to 6 decimal places, the decimal nearest to the double's exact value, ties to even, and the double nearest
 * to that decimal: Python's round(time, 6).
 */
export function roundedTime(time: number): number {
  if (!(Math.abs(time) < COARSE)) return time;
  const magnitude = Math.abs(time);
  const micros = magnitude * MICRO;
  // magnitude * MICRO is micros + error exactly (Dekker): both halves times 14 bits fit into a double
  const shifted = magnitude * SPLITTER;
  const high = shifted - (shifted - magnitude);
  const error = high * MICRO - micros + (magnitude - high) * MICRO;
  const whole = Math.floor(micros);
  // exact; if it is not 0 it exceeds the error, which therefore counts only at the middle
  const aboveHalf = micros - whole - 0.5 || error;
  const isUp = aboveHalf === 0 ? whole % 2 === 1 : aboveHalf > 0;
  // below 2^53 the quotient of whole numbers is the double nearest to the decimal
  const rounded = (isUp ? whole + 1 : whole) / MICRO;
  return time < 0 ? -rounded : rounded;
}
