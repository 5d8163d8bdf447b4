import { describe } from "../base/errors.js";
import { badShape, elementCount, Tensor } from "./tensor.js";

/** Throws tensor.bad-shape unless the shapes are equal. */
export function requireSameShape(operation: string, a: Tensor, b: Tensor): void {
  if (a.hasShape(b)) return;
  throw badShape(operation, "equal shapes", `[${a.shape.join(", ")}] and [${b.shape.join(", ")}]`);
}

/** Returns `out`, which must have this shape. Default: a new tensor that the operation has to fill. */
export function outputOf(operation: string, like: Tensor | readonly number[], out: Tensor | undefined): Tensor {
  const isTensor = out instanceof Tensor;
  if (isTensor && out.hasShape(like)) return out;
  if (out === undefined) return Tensor.unfilled(like);
  const shape = like instanceof Tensor ? like.shape : like;
  elementCount(shape);
  const received = isTensor ? out : describe(out);
  throw badShape(`${operation} out`, `a tensor of shape [${shape.join(", ")}]`, received);
}

/** Sizes of the four axes of a tensor; `layout` names them in the message. */
export function fourSides(subject: string, tensor: Tensor, layout = "[B, C, H, W]"): [number, number, number, number] {
  const [a, b, c, d] = tensor.shape;
  if (tensor.shape.length !== 4 || a === undefined || b === undefined || c === undefined || d === undefined) {
    throw badShape(subject, `a tensor ${layout}`, tensor);
  }
  return [a, b, c, d];
}

/** Number of masks, height and width of a mask [B, H, W], [B, 1, H, W] or [H, W]. */
export function maskSides(subject: string, mask: Tensor): [number, number, number] {
  const { shape } = mask;
  const height = shape[shape.length - 2];
  const width = shape[shape.length - 1];
  if (height === undefined || width === undefined || height === 0 || width === 0) {
    throw badShape(subject, "a mask [B, H, W] or [H, W]", mask);
  }
  return [mask.size / (height * width), height, width];
}
