import { LatentkitError } from "../base/errors.js";
import { Tensor } from "./tensor.js";

/** A tensor as `outer` runs of `length` blocks of `inner` values, `length` being the side of the axis. */
function blocksOf({ shape }: Tensor, axis: number): { at: number; outer: number; length: number; inner: number } {
  const at = axis < 0 ? axis + shape.length : axis;
  const length = shape[at];
  if (length === undefined) {
    const message = `Tensor: expected an axis ${axis}, received shape [${shape.join(", ")}].`;
    throw new LatentkitError("tensor.bad-shape", message);
  }
  const product = (sides: readonly number[]) => sides.reduce((size, side) => size * side, 1);
  return { at, outer: product(shape.slice(0, at)), length, inner: product(shape.slice(at + 1)) };
}

/** Elements `from` to `from + count` of an axis, which counts from the end where it is negative. */
export function narrowed(x: Tensor, axis: number, from: number, count: number): Tensor {
  const { at, outer, length, inner } = blocksOf(x, axis);
  if (count === length && from === 0) return x;
  if (from < 0 || count < 0 || from + count > length) {
    const message = `Part of axis ${axis}: expected elements in 0 to ${length}, received ${from} to ${from + count}.`;
    throw new LatentkitError("tensor.bad-shape", message);
  }
  const out = Tensor.unfilled(x.shape.with(at, count));
  for (let run = 0; run < outer; run++) {
    const start = (run * length + from) * inner;
    out.data.set(x.data.subarray(start, start + count * inner), run * count * inner);
  }
  return out;
}

/** Tensors one after the other along an axis; their other sides must be equal. */
export function joined(parts: readonly Tensor[], axis: number): Tensor {
  const first = parts[0]!;
  if (parts.length === 1) return first;
  const { at, outer } = blocksOf(first, axis);
  const blocks = parts.map((part) => ({ part, side: part.shape[at] ?? 0, run: outer === 0 ? 0 : part.size / outer }));
  for (const { part, side } of blocks) {
    if (first.hasShape(part.shape.with(at, first.shape[at]!)) && side === part.shape[at]) continue;
    const shapes = `[${first.shape.join(", ")}] and [${part.shape.join(", ")}]`;
    const message = `Joining along axis ${at}: expected shapes that are equal on all other axes, received ${shapes}.`;
    throw new LatentkitError("tensor.bad-shape", message);
  }
  const out = Tensor.unfilled(
    first.shape.with(
      at,
      blocks.reduce((sum, { side }) => sum + side, 0),
    ),
  );
  let to = 0;
  for (let run = 0; run < outer; run++) {
    for (const { part, run: size } of blocks) {
      out.data.set(part.data.subarray(run * size, (run + 1) * size), to);
      to += size;
    }
  }
  return out;
}

/** Items of a batch over and over, or the first of them: `count` items. */
export function cycled(x: Tensor, count: number): Tensor {
  const { length, inner } = blocksOf(x, 0);
  if (count <= length) return narrowed(x, 0, 0, count);
  if (length === 0) throw new LatentkitError("tensor.bad-shape", "Batch: expected at least one item, received none.");
  const out = Tensor.unfilled(x.shape.with(0, count));
  const all = length * inner;
  for (let to = 0; to < out.size; to += all) out.data.set(x.data.subarray(0, Math.min(all, out.size - to)), to);
  return out;
}

/** The elements of an axis in reverse order. */
export function flipped(x: Tensor, axis: number): Tensor {
  const { outer, length, inner } = blocksOf(x, axis);
  const out = Tensor.unfilled(x.shape);
  const [from, into] = [x.data, out.data];
  for (let run = 0, to = 0; run < outer; run++) {
    for (let at = length - 1; at >= 0; at--) {
      const start = (run * length + at) * inner;
      for (let i = 0; i < inner; i++) into[to++] = from[start + i]!;
    }
  }
  return out;
}

/** The last two axes exchanged: rows become columns. */
export function transposed(x: Tensor): Tensor {
  const { at, outer, length: width } = blocksOf(x, -1);
  const height = x.shape[at - 1] ?? 1;
  const out = Tensor.unfilled([...x.shape.slice(0, -2), width, height]);
  const [from, into] = [x.data, out.data];
  for (let plane = 0; plane < outer / height; plane++) {
    const start = plane * height * width;
    for (let row = 0; row < height; row++)
      for (let column = 0; column < width; column++)
        into[start + column * height + row] = from[start + row * width + column]!;
  }
  return out;
}
