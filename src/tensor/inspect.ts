/** Values that are looked at for a range: some milliseconds. */
const MAX_SEEN = 2 ** 22;

/** The least and the largest value, as console.log shows them after a tensor's shape: "-3.21 … 3.4, 2 NaN". */
export function rangeOf(values: Float32Array): string {
  if (values.length === 0) return "empty";
  if (values.length > MAX_SEEN) return `${values.length} values`;
  let [low, high, nans] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0];
  // an iterator would take ten times as long
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (value < low) low = value;
    if (value > high) high = value;
    if (Number.isNaN(value)) nans++;
  }
  if (nans === values.length) return "NaN";
  const range = low === high ? shown(low) : `${shown(low)} … ${shown(high)}`;
  return nans === 0 ? range : `${range}, ${nans} NaN`;
}

/** Four digits: float32 0.1 is 0.10000000149. */
const shown = (value: number): string => String(Number(value.toPrecision(4)));
