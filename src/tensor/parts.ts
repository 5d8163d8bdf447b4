import { CPU_SIDE, operandOnDevice, produce, type Side } from "./device/compute.js";
import { outputOf } from "./shape.js";
import { badShape, elementCount, Tensor } from "./tensor.js";

/** A rectangle of the two sides of pictures or latents. */
export interface Region {
  readonly top: number;
  readonly left: number;
  readonly height: number;
  readonly width: number;
}

/** Values of one item of a batch, in its memory. */
export function itemValues({ data, shape, size }: Tensor, index: number): Float32Array {
  const length = size / shape[0]!;
  return data.subarray(index * length, (index + 1) * length);
}

/** Elements `from` to `from + count` of an axis, a negative one counted from the end; x itself for all. */
export function narrowed(x: Tensor, axis: number, from: number, count: number): Tensor {
  const at = axisOf(x, axis);
  const length = x.shape[at]!;
  if (count === length && from === 0) return x;
  if (!areSizes(from, count) || from + count > length)
    throw badShape(`Part of axis ${axis}`, `elements in 0 to ${length}`, `${from} to ${from + count}`);
  const inner = elementCount(x.shape.slice(at + 1));
  const rows = [elementCount(x.shape.slice(0, at)), length, inner] as const;
  return cut(x, rows, { top: from, left: 0, height: count, width: inner }, x.shape.with(at, count));
}

/** The region of an axis (rows) and the one after it (columns); x itself for all. Fails for one that reaches outside. */
export function cropped(x: Tensor, axis: number, region: Region): Tensor {
  const at = axisOf(x, axis);
  const [rows, columns] = [x.shape[at]!, x.shape[axisOf(x, at + 1)]!];
  const { top, left, height, width } = region;
  requireInside("Region", region, rows, columns);
  if (height === rows && width === columns) return x;
  const cell = elementCount(x.shape.slice(at + 2));
  const values = { top, left: left * cell, height, width: width * cell };
  const plane = [elementCount(x.shape.slice(0, at)), rows, columns * cell] as const;
  return cut(x, plane, values, x.shape.with(at, height).with(at + 1, width));
}

const areSizes = (...values: readonly number[]): boolean => values.every((n) => Number.isInteger(n) && n >= 0);

/** Throws tensor.bad-shape for a region that reaches outside. */
export function requireInside(subject: string, region: Region, rows: number, columns: number): void {
  const { top, left, height, width } = region;
  if (areSizes(top, left, height, width) && top + height <= rows && left + width <= columns) return;
  const received = `${height} x ${width} at row ${top}, column ${left}`;
  throw badShape(subject, `one within ${rows} rows and ${columns} columns`, received);
}

/** Tensors, one after the other along an axis; their other sides must be equal. A single one is returned itself, several in `out` if it is set. */
export function joined(parts: readonly Tensor[], axis: number, out?: Tensor): Tensor {
  const first = parts[0]!;
  if (parts.length === 1) return first;
  const at = axisOf(first, axis);
  let length = 0;
  for (const { shape } of parts) {
    const side = shape[at];
    if (side === undefined || !first.hasShape(shape.with(at, first.shape[at]!))) {
      const received = `[${first.shape.join(", ")}] and [${shape.join(", ")}]`;
      throw badShape(`Joining along axis ${at}`, "shapes that are equal on all other axes", received);
    }
    length += side;
  }
  const [outer, inner] = [elementCount(first.shape.slice(0, at)), elementCount(first.shape.slice(at + 1))];
  const write = (side: Side, result: Tensor): void => {
    let row = 0;
    for (const part of parts) {
      const rows = part.shape[at]!;
      const from = [outer, 1, rows, inner] as const;
      if (part.size > 0) side.ops.composite(side.out(result), [outer, 1, length, inner], side.in(part), from, 0, row);
      row += rows;
    }
  };
  return copied("joined", first.shape.with(at, length), parts, write, out);
}

/** Items of a batch over and over, in `out` if it is set, or the first of them: `count` items. */
export function cycled(x: Tensor, count: number, out?: Tensor): Tensor {
  const length = x.shape[axisOf(x, 0)]!;
  if (count <= length) return narrowed(x, 0, 0, count);
  if (length === 0) throw badShape("Batch", "at least one item", "none");
  const write = (side: Side, result: Tensor): void => {
    for (let to = 0; to < result.size; to += x.size) {
      side.copy(result, x, to, 0, Math.min(x.size, result.size - to));
    }
  };
  return copied("cycled", x.shape.with(0, count), [x], write, out);
}

/** The first `count` items of a batch; the last one repeats if there are too few. */
export function withLast(x: Tensor, count: number): Tensor {
  const length = x.shape[axisOf(x, 0)]!;
  if (count <= length) return narrowed(x, 0, 0, count);
  if (length === 0) throw badShape("Batch", "at least one item", "none");
  return joined([x, repeated(narrowed(x, 0, length - 1, 1), count - length)], 0);
}

/** The whole batch several times, in `out` if it is set and `times` is above 1. */
export const repeated = (x: Tensor, times: number, out?: Tensor): Tensor =>
  cycled(x, x.shape[axisOf(x, 0)]! * times, out);

/** A region of planes [planes, rows, columns] as a tensor of this shape. */
function cut(
  x: Tensor,
  [planes, rows, columns]: readonly [number, number, number],
  { top, left, height, width }: Region,
  shape: readonly number[],
): Tensor {
  return copied("part", shape, [x], (side, result) => {
    if (result.size === 0) return;
    // pasted over all of the result
    const from = [planes, 1, rows, columns] as const;
    side.ops.composite(side.out(result), [planes, 1, height, width], side.in(x), from, -left, -top);
  });
}

/** A copy on the side of its operand: a mere copy is not worth the way to a device. */
function copied(
  operation: string,
  shape: readonly number[],
  operands: readonly Tensor[],
  write: (side: Side, result: Tensor) => void,
  out?: Tensor,
): Tensor {
  const onDevice = operandOnDevice(operands);
  if (onDevice !== undefined)
    return produce(operation, shape, 0, out, (side, _, result) => write(side, result), onDevice);
  const result = outputOf(operation, shape, out);
  write(CPU_SIDE, result);
  return result;
}

/** Index of an axis, a negative one counted from the end. Fails for one that the tensor does not have. */
function axisOf({ shape }: Tensor, axis: number): number {
  const at = axis < 0 ? axis + shape.length : axis;
  if (shape[at] !== undefined) return at;
  throw badShape("Tensor", `an axis ${axis}`, { shape });
}

/** First cell of a result in its source, and the distances to its neighbours below and to the right. */
interface Walk {
  readonly origin: number;
  readonly down: number;
  readonly across: number;
}

/** Rows and columns of an axis, which may count from the end, and the one after it, exchanged left to right. */
export function mirrored(x: Tensor, axis: number): Tensor {
  const [height, width] = sidesOf(x, axis);
  return walked(x, axis, [height, width], { origin: width - 1, down: width, across: -1 });
}

/** Rows and columns of an axis and the one after it, upside down. */
export function upsideDown(x: Tensor, axis: number): Tensor {
  const [height, width] = sidesOf(x, axis);
  return walked(x, axis, [height, width], { origin: (height - 1) * width, down: -width, across: 1 });
}

/** Rows and columns of an axis and the one after it, turned clockwise by quarters of a turn, 0 to 3; x itself for 0. */
export function turned(x: Tensor, axis: number, quarters: number): Tensor {
  const [height, width] = sidesOf(x, axis);
  const last = height * width - 1;
  if (quarters === 1)
    return walked(x, axis, [width, height], { origin: (height - 1) * width, down: 1, across: -width });
  if (quarters === 2) return walked(x, axis, [height, width], { origin: last, down: -width, across: -1 });
  if (quarters === 3) return walked(x, axis, [width, height], { origin: width - 1, down: -1, across: width });
  return x;
}

const sidesOf = ({ shape }: Tensor, axis: number): [number, number] => [shape.at(axis) ?? 0, shape.at(axis + 1) ?? 0];

function walked(x: Tensor, axis: number, [height, width]: [number, number], { origin, down, across }: Walk): Tensor {
  const at = axis < 0 ? axis + x.shape.length : axis;
  const [planes, cell] = [elementCount(x.shape.slice(0, at)), elementCount(x.shape.slice(at + 2))];
  const out = Tensor.unfilled(x.shape.with(at, height).with(at + 1, width));
  const [from, into] = [x.data, out.data];
  let to = 0;
  for (let line = 0; line < planes * height; line++) {
    const first = Math.floor(line / height) * height * width + origin + (line % height) * down;
    for (let column = 0; column < width; column++) {
      const start = (first + column * across) * cell;
      for (let k = 0; k < cell; k++) into[to++] = from[start + k]!;
    }
  }
  return out;
}
