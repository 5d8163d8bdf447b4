import { type Term, weightedSum } from "../../tensor/ops.js";
import type { Tensor } from "../../tensor/tensor.js";

/** Terms that one weighted sum takes. */
const MOST_TERMS = 8;

/**
 * Weighted sum of one term or more, rounded once up to 8 of them, into `out`, which is none of
 * them, where it is set. A single tensor of coefficient 1 is returned itself.
 */
export function sumOf(terms: readonly Term[], out?: Tensor): Tensor {
  if (terms.length === 1 && terms[0]![0] === 1) return terms[0]![1];
  let sum = weightedSum(terms.slice(0, MOST_TERMS), out);
  for (let at = MOST_TERMS; at < terms.length; at += MOST_TERMS - 1) {
    sum = weightedSum([[1, sum], ...terms.slice(at, at + MOST_TERMS - 1)], sum);
  }
  return sum;
}
