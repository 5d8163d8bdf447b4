/**
 * Weights w of the nodes with sum of w[j] * nodes[j]^p = moments[p] for every p: integrals of the Lagrange polynomials,
 * where moments[p] is the integral of t^p. Björck and Pereyra's solution of the Vandermonde system, 1970.
 */
export function momentWeights(nodes: readonly number[], moments: readonly number[]): number[] {
  const last = nodes.length - 1;
  const w = moments.slice(0, last + 1);
  for (let k = 0; k < last; k++) {
    for (let i = last; i > k; i--) w[i]! -= nodes[k]! * w[i - 1]!;
  }
  for (let k = last - 1; k >= 0; k--) {
    for (let i = k + 1; i <= last; i++) w[i]! /= nodes[i]! - nodes[i - k - 1]!;
    for (let i = k; i < last; i++) w[i]! -= w[i + 1]!;
  }
  return w;
}
