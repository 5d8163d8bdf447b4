import { inputError } from "../../base/errors.js";
import { weightedSum } from "../../tensor/ops.js";
import { joined, narrowed } from "../../tensor/parts.js";
import { Tensor } from "../../tensor/tensor.js";

/** Ways to make one embedding of several pictures: those of the pack, in its order. */
export const COMBINATIONS = ["concat", "add", "subtract", "average", "norm average"] as const;

export type Combination = (typeof COMBINATIONS)[number];

/** Each item of a batch as a batch of one. */
const itemsOf = (x: Tensor): Tensor[] => Array.from({ length: x.shape[0]! }, (_, index) => narrowed(x, 0, index, 1));

/** Embeddings [n, …] of pictures as one [1, …]; "concat" leaves them beside each other. */
export function combined(embeds: Tensor, method: Combination | "max" | "min"): Tensor {
  const items = itemsOf(embeds);
  const count = items.length;
  if (method === "concat" || count === 1) return embeds;
  const sum = (weightOf: (index: number) => number): Tensor =>
    weightedSum(items.map((item, index) => [weightOf(index), item] as const));
  switch (method) {
    case "add":
      return sum(() => 1);
    case "subtract":
      return sum((index) => (index === 0 ? 1 : -1 / (count - 1)));
    case "average":
      return sum(() => 1 / count);
    case "norm average":
      return byElement(items, (values) => {
        const norm = Math.sqrt(values.reduce((total, value) => total + value * value, 0));
        // embeddings that are all 0 here have no direction
        return norm === 0 ? 0 : values.reduce((total, value) => total + value / norm, 0) / count;
      });
    case "max":
      return byElement(items, (values) => Math.max(...values));
    case "min":
      return byElement(items, (values) => Math.min(...values));
  }
}

/** One tensor of several of a shape, element by element. */
function byElement(items: readonly Tensor[], combine: (values: readonly number[]) => number): Tensor {
  const out = Tensor.unfilled(items[0]!.shape);
  for (let i = 0; i < out.size; i++) out.data[i] = combine(items.map(({ data }) => data[i]!));
  return out;
}

/** Embeddings of other batches beside each other. Fails with value.invalid for those of other sizes. */
export function besideEachOther(embeds: readonly Tensor[]): Tensor {
  const [first] = embeds;
  for (const [index, one] of embeds.entries())
    if (!one.hasShape(first!.shape.with(0, one.shape[0]!)))
      throw inputError("value.invalid", { input: `embed${index + 1}` }, "embeddings as wide as the first ones", one);
  return joined(embeds, 0);
}
