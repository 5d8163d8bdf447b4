import { asciiDigits } from "../../io/ascii-digits.js";

const DECIMAL = /^[+-]?(?:\d+(?:_\d+)*(?:\.(?:\d+(?:_\d+)*)?)?|\.\d+(?:_\d+)*)(?:[eE][+-]?\d+(?:_\d+)*)?$/;
const SPECIAL = /^([+-]?)(inf|infinity|nan)$/i;

/** Reads a number as Python's float() does (" 2 ", "1_0", "nan", ".5", "1e-1", digits of any script); undefined if it is none. */
export function pythonFloat(text: string): number | undefined {
  const trimmed = asciiDigits(text.trim());
  if (DECIMAL.test(trimmed)) return Number(trimmed.replaceAll("_", ""));
  const special = SPECIAL.exec(trimmed);
  if (special === null) return undefined;
  if (special[2]?.toLowerCase() === "nan") return Number.NaN;
  return special[1] === "-" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
}
