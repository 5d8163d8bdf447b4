/** A tile along one axis, in values of the source, with weights for each value of the target. */
export interface Span {
  readonly from: number;
  readonly count: number;
  /** Those of all tiles add up to 1 everywhere. */
  readonly weights: Float64Array;
}

/**
 * Tiles of `size` at most along an axis that share `overlap` values, the last one more, where their weights rise and fall
 * linearly. `scale` is the number of weights for a value.
 */
export function spansOf(length: number, size: number, overlap: number, scale: number): Span[] {
  const count = Math.min(size, length);
  const steps = Math.max(0, Math.ceil((length - size) / (size - overlap)));
  const starts = Array.from({ length: steps + 1 }, (_, step) => Math.min(step * (size - overlap), length - count));
  const rise = (at: number) => Math.min(1, (at + 1) / (overlap * scale), (count * scale - at) / (overlap * scale));
  const sums = new Float64Array(length * scale);
  for (const from of starts) for (let at = 0; at < count * scale; at++) sums[from * scale + at]! += rise(at);
  return starts.map((from) => ({
    from,
    count,
    weights: Float64Array.from({ length: count * scale }, (_, at) => rise(at) / sums[from * scale + at]!),
  }));
}
