import { describe, LatentkitError } from "../errors.js";
import { elementCount, Tensor } from "./tensor.js";

/** Refuses tensors of different shapes. */
export function sameShape(what: string, a: Tensor, b: Tensor): void {
  if (a.hasShape(b)) return;
  throw new LatentkitError(
    "tensor.bad-shape",
    `${what}: expected equal shapes, received [${a.shape.join(", ")}] and [${b.shape.join(", ")}].`,
  );
}

/** Where an operation writes: `out` where given, which must have this (tensor's) shape, else memory that it fills. */
export function outputOf(what: string, of: Tensor | readonly number[], out: Tensor | undefined): Tensor {
  const isTensor = out instanceof Tensor;
  // what equals a tensor's shape is one
  if (isTensor && out.hasShape(of)) return out;
  const shape = of instanceof Tensor ? of.shape : of;
  if (out === undefined) return Tensor.unfilled(shape);
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
