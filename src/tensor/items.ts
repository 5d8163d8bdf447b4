import { compute } from "./device/compute.js";
import { type Term, weightedSum } from "./ops.js";
import { itemValues } from "./parts.js";
import { badShape, Tensor } from "./tensor.js";

/** A batch and one coefficient for each of its items. */
export type ItemTerm = readonly [coefficients: readonly number[], x: Tensor];

/** Sum of coefficient * x over the items of batches of one shape, as the terms of a weighted sum. */
export function termsOfItems(terms: readonly ItemTerm[]): readonly Term[] {
  const isEqual = terms.every(([coefficients]) => coefficients.every((value) => Object.is(value, coefficients[0])));
  if (isEqual) return terms.map(([coefficients, x]) => [coefficients[0] ?? 0, x]);
  const out = Tensor.unfilled(terms[0]![1].shape);
  for (let item = 0; item < out.shape[0]!; item++) {
    const own = terms.map(([coefficients, x]) => [coefficients[item]!, itemOf(x, item)] as const);
    weightedSum(own, itemOf(out, item));
  }
  return [[1, out]];
}

/** Sum of coefficient * x over the items of batches of one shape, like weightedSum; a single batch of coefficients 1 is returned itself. */
export function sumOfItems(terms: readonly ItemTerm[]): Tensor {
  const [first, ...others] = termsOfItems(terms);
  return others.length === 0 && first![0] === 1 ? first![1] : weightedSum([first!, ...others]);
}

/** Scalar product of the items of two batches, in double. */
export function productOfItems(a: Tensor, b: Tensor): number[] {
  return Array.from({ length: a.shape[0]! }, (_, item) => {
    const [left, right] = [itemValues(a, item), itemValues(b, item)];
    let sum = 0;
    // a loop: reduce calls a function for every number
    for (let i = 0; i < left.length; i++) sum += left[i]! * right[i]!;
    return sum;
  });
}

/** Unbiased standard deviation (n - 1) of each item of a batch, as float32; NaN for items of one value. */
export function stdOfItems(x: Tensor): number[] {
  const [items] = x.shape;
  if (items === undefined || x.size === 0) throw badShape("stdOfItems", "a batch of values", x);
  const deviations = new Float32Array(items);
  compute(x.size, (at) => at.ops.stdOfItems(deviations, at.in(x)), x);
  return [...deviations];
}

/** One item of a batch, in its memory. */
const itemOf = (x: Tensor, item: number): Tensor => Tensor.from(itemValues(x, item), x.shape.with(0, 1));
