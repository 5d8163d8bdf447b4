import { inputError } from "../base/errors.js";
import type { Latent } from "../host/types.js";
import { resizeBilinear } from "../tensor/ops.js";
import { narrowed } from "../tensor/parts.js";
import { roundHalfEven } from "../tensor/rounding.js";
import type { Tensor } from "../tensor/tensor.js";

/** Resizes the last two axes. */
type Resize = (x: Tensor, height: number, width: number) => Tensor;

/**
 * A latent in height and width of another one: its middle of the other's proportions, resized. All axes between batch and
 * height must be equal; `input` names the latent's input in messages.
 */
export function fitted(x: Tensor, like: Tensor, input: string, resize: Resize = resizeBilinear): Tensor {
  const inner = ({ shape }: Tensor) => shape.slice(1, shape.length === 3 ? undefined : -2).join(", ");
  if (x.shape.length !== like.shape.length || inner(x) !== inner(like) || (x.size === 0) !== (like.size === 0)) {
    const expected = `a latent of [batch, ${like.shape.slice(1).join(", ")}] or of another height and width`;
    throw inputError("input.invalid", { input }, expected, x);
  }
  const [height = 0, width = 0] = like.shape.slice(-2);
  if (x.size === 0 || x.shape.slice(1).join() === like.shape.slice(1).join()) return x;
  return resize(middleOf(x, height, width), height, width);
}

/** The largest middle part with the proportions of height x width. */
function middleOf(x: Tensor, height: number, width: number): Tensor {
  const [ownHeight = 0, ownWidth = 0] = x.shape.slice(-2);
  const [own, wanted] = [ownWidth / ownHeight, width / height];
  const margin = (side: number, share: number) =>
    Math.min(roundHalfEven((side - side * share) / 2), Math.floor((side - 1) / 2));
  const left = own > wanted ? margin(ownWidth, wanted / own) : 0;
  const top = own < wanted ? margin(ownHeight, own / wanted) : 0;
  return narrowed(narrowed(x, -1, left, ownWidth - 2 * left), -2, top, ownHeight - 2 * top);
}

/** The latent as [B, planes, H, W]: axes between channels and height (frames) count as channels. */
export function planes(tensor: Tensor): Tensor {
  const channels = tensor.shape.slice(1, -2).reduce((product, side) => product * side, 1);
  return tensor.reshape([tensor.shape[0]!, channels, ...tensor.shape.slice(-2)]);
}

/** Indices of a latent's items among the noises of a seed: its own `batch_index`, else 0, 1, 2 … */
export const batchIndexOf = ({ samples, batch_index }: Latent): number[] =>
  batch_index ?? Array.from({ length: samples.shape[0]! }, (_, index) => index);
