import { LatentkitError } from "../base/errors.js";
import { compute, operandOnDevice, produce } from "./device/compute.js";
import { Tensor } from "./tensor.js";

// size 0 in `produce`: a copy alone is not worth the way to a device

/** A new tensor of all items of at least one tensor, in order; the shapes differ in the first axis alone. */
export function concatBatch(tensors: readonly Tensor[]): Tensor {
  const [first] = tensors;
  if (first === undefined) throw new LatentkitError("value.invalid", "concatBatch: expected at least one tensor.");
  const item = itemShape("concatBatch", first);
  let items = 0;
  for (const tensor of tensors) {
    const { shape } = tensor;
    if (shape.length !== first.shape.length || item.some((side, axis) => side !== shape[axis + 1])) {
      const message = `concatBatch: expected items of shape [${item.join(", ")}], received a batch [${shape.join(", ")}].`;
      throw new LatentkitError("tensor.bad-shape", message);
    }
    items += shape[0]!;
  }
  return produce(
    "concatBatch",
    [items, ...item],
    0,
    undefined,
    (at, _, result) => {
      let from = 0;
      for (const tensor of tensors) {
        at.copy(result, tensor, from);
        from += tensor.size;
      }
    },
    operandOnDevice(tensors),
  );
}

/** Items of a batch, `count` from item `from` on; in memory they share its values. */
export function sliceBatch(x: Tensor, from: number, count: number): Tensor {
  const item = itemShape("sliceBatch", x);
  const items = x.shape[0]!;
  if (!Number.isInteger(from) || !Number.isInteger(count) || from < 0 || count < 0 || from + count > items) {
    const message = `sliceBatch: expected items within the batch of ${items}, received ${count} from item ${from} on.`;
    throw new LatentkitError("tensor.bad-shape", message);
  }
  const size = items === 0 ? 0 : x.size / items;
  if (!x.isAway) return Tensor.from(x.data.subarray(from * size, (from + count) * size), [count, ...item]);
  return produce(
    "sliceBatch",
    [count, ...item],
    0,
    undefined,
    (at, _, result) => at.copy(result, x, 0, from * size, count * size),
    x,
  );
}

/** Unbiased standard deviation (n - 1) of each item of a batch, as float32; NaN for items of one value. */
export function stdOfItems(x: Tensor): number[] {
  itemShape("stdOfItems", x);
  if (x.size === 0) {
    throw new LatentkitError(
      "tensor.bad-shape",
      `stdOfItems: expected a batch of values, received shape [${x.shape.join(", ")}].`,
    );
  }
  const deviations = new Float32Array(x.shape[0]!);
  compute(x.size, (at) => at.ops.stdOfItems(deviations, at.in(x)), x);
  return [...deviations];
}

/** Shape of an item of a batch. */
function itemShape(operation: string, { shape }: Tensor): readonly number[] {
  if (shape.length > 0) return shape.slice(1);
  throw new LatentkitError("tensor.bad-shape", `${operation}: expected a batch, received shape [].`);
}
