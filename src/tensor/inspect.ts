/** Number of values scanned for a range at most: some milliseconds. */
const MAX_SCANNED = 2 ** 22;

/** Least and largest value, as console.log prints them after a tensor's shape: "-3.21 … 3.4, 2 NaN". */
export function rangeOf(values: Float32Array): string {
  if (values.length === 0) return "empty";
  if (values.length > MAX_SCANNED) return `${values.length} values`;
  let [low, high, nans] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0];
  // an iterator would take ten times as long
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (value < low) low = value;
    if (value > high) high = value;
    if (Number.isNaN(value)) nans++;
  }
  if (nans === values.length) return "NaN";
  const range = low === high ? short(low) : `${short(low)} … ${short(high)}`;
  return nans === 0 ? range : `${range}, ${nans} NaN`;
}

/** Rounds to four digits: float32 0.1 is 0.10000000149. */
const short = (value: number): string => String(Number(value.toPrecision(4)));
