import { describe, LatentkitError } from "../errors.js";
import { elementCount, Tensor } from "./tensor.js";

/** Refuses tensors of different shapes. */
export function sameShape(what: string, a: Tensor, b: Tensor): void {
  if (equalShapes(a.shape, b.shape)) return;
  throw new LatentkitError(
    "tensor.bad-shape",
    `${what}: expected equal shapes, received [${a.shape.join(", ")}] and [${b.shape.join(", ")}].`,
  );
}

// a plain loop: callbacks and iterators would cost more than a small operation
function equalShapes(a: readonly number[], b: readonly number[]): boolean {
  if (a === b) return true;
  if (!Array.isArray(a) || a.length !== b.length) return false;
  for (let axis = 0; axis < a.length; axis++) if (a[axis] !== b[axis]) return false;
  return true;
}

/** Where an operation writes: `out` where given, which must have this shape, else memory that it fills. */
export function outputOf(what: string, shape: readonly number[], out: Tensor | undefined): Tensor {
  if (out === undefined) return Tensor.unfilled(shape);
  const isTensor = out instanceof Tensor;
  // what equals a tensor's shape is one
  if (isTensor && equalShapes(shape, out.shape)) return out;
  elementCount(shape);
  const received = isTensor ? `shape [${out.shape.join(", ")}]` : describe(out);
  const expected = `a tensor of shape [${shape.join(", ")}]`;
  throw new LatentkitError("tensor.bad-shape", `${what} out: expected ${expected}, received ${received}.`);
}

/** The four sides of a tensor with four axes; `layout` names them in the message. */
export function fourSides(what: string, tensor: Tensor, layout = "[B, C, H, W]"): [number, number, number, number] {
  const [a, b, c, d] = tensor.shape;
  if (tensor.shape.length !== 4 || a === undefined || b === undefined || c === undefined || d === undefined) {
    throw new LatentkitError(
      "tensor.bad-shape",
      `${what}: expected a tensor ${layout}, received shape [${tensor.shape.join(", ")}].`,
    );
  }
  return [a, b, c, d];
}

/** A mask [B, H, W], [B, 1, H, W] or [H, W] as its number of masks, height and width. */
export function maskSides(what: string, mask: Tensor): [number, number, number] {
  const { shape } = mask;
  const height = shape[shape.length - 2];
  const width = shape[shape.length - 1];
  if (height === undefined || width === undefined || height === 0 || width === 0) {
    throw new LatentkitError(
      "tensor.bad-shape",
      `${what}: expected a mask [B, H, W] or [H, W], received shape [${shape.join(", ")}].`,
    );
  }
  return [mask.size / (height * width), height, width];
}
