import { inputError } from "../base/errors.js";
import { roundHalfEven } from "../tensor/rounding.js";

/** Height and width times a factor, half to even. Throws value.out-of-range where nothing would be left. */
export function scaledSides(
  at: { node: string; input: string },
  [height, width]: readonly [height: number, width: number],
  factor: number,
): { height: number; width: number } {
  const sides = { height: roundHalfEven(height * factor), width: roundHalfEven(width * factor) };
  if (sides.height !== 0 && sides.width !== 0) return sides;
  throw inputError("value.out-of-range", at, `a factor that leaves something of ${width} x ${height}`, factor);
}
