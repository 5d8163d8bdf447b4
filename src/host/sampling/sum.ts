import { repeatedSum, type Term, weightedSum } from "../../tensor/ops.js";
import { Tensor } from "../../tensor/tensor.js";

/** Terms that one weighted sum takes. */
const MOST_TERMS = 8;

// decisions: A step is one sum in float32
/**
 * An estimate of the clean latent as a weighted sum of the model's outputs: a step adds it to its other terms in one pass,
 * whether the sum itself has been read or not.
 */
export class Estimate {
  #values: Tensor | undefined;

  constructor(readonly terms: readonly Term[]) {}

  /** The sum, computed once. */
  get tensor(): Tensor {
    this.#values ??= sumOf(this.terms);
    return this.#values;
  }
}

/** A coefficient and a latent: a tensor, or an estimate, which stands for its own terms. */
export type LatentTerm = readonly [coefficient: number, latent: Tensor | Estimate];

/** A latent's tensor. */
export const tensorOf = (latent: Tensor | Estimate): Tensor => (latent instanceof Estimate ? latent.tensor : latent);

/** Whether a sum is its only term itself. */
export const isItself = (terms: readonly Term[]): boolean => terms.length === 1 && terms[0]![0] === 1;

/** Weighted sum of one term or more; a single tensor of coefficient 1 is returned itself. */
export function sumOf(terms: readonly LatentTerm[]): Tensor {
  const flat = flatTerms(terms);
  return isItself(flat) ? flat[0]![1] : sumOfFlat(flat);
}

/** Weighted sum of one or more terms, up to 8 in one pass; into `out`, which must not be one of them, if it is set. */
export function sumOfFlat(flat: readonly Term[], out?: Tensor): Tensor {
  if (flat.length <= MOST_TERMS) return weightedSum(flat, out);
  let sum = weightedSum(flat.slice(0, MOST_TERMS), out);
  for (let at = MOST_TERMS; at < flat.length; at += MOST_TERMS - 1) {
    sum = weightedSum([[1, sum], ...flat.slice(at, at + MOST_TERMS - 1)], sum);
  }
  return sum;
}

/** A sum repeated as one batch, and only its first items in the same memory. */
export interface RepeatedSum {
  readonly batch: Tensor;
  readonly first: Tensor;
}

/** Whether `repeatedSumOf` has something to do: there is a sum, of up to 8 terms, on the CPU. */
export function isRepeatable(terms: readonly Term[]): boolean {
  if (terms.length > MOST_TERMS || isItself(terms)) return false;
  for (const [, x] of terms) if (x.isAway) return false;
  return true;
}

/** The sum of terms that are repeatable, `times` times as one batch, in `out` if it is set. */
export function repeatedSumOf(terms: readonly Term[], times: number, out?: Tensor): RepeatedSum {
  const batch = repeatedSum(terms, times, out);
  return { batch, first: batch.part(0, terms[0]![1]) };
}

/** The terms, those of estimates in place of these. */
export function flatTerms(terms: readonly LatentTerm[]): readonly Term[] {
  const flat: Term[] = [];
  for (const term of terms) {
    const [coefficient, latent] = term;
    if (latent instanceof Tensor) flat.push(term as Term);
    else for (const [own, x] of latent.terms) flat.push([coefficient * own, x]);
  }
  return flat;
}
