import type { Tensor } from "./tensor.js";

/**
 * Root mean square of (low - high) / max(atol, rtol * max(|low|, |previous|)): the difference of two solutions in units
 * of what is tolerated, 1 at the limit.
 */
export function scaledError(low: Tensor, high: Tensor, previous: Tensor, atol: number, rtol: number): number {
  const [a, b, c] = [low.data, high.data, previous.data];
  let sum = 0;
  for (let i = 0; i < a.length; i++) {
    const tolerated = Math.max(atol, rtol * Math.max(Math.abs(a[i]!), Math.abs(c[i]!)));
    sum += ((a[i]! - b[i]!) / tolerated) ** 2;
  }
  return Math.sqrt(sum / a.length);
}
