import { inputError } from "../base/errors.js";
import type { Latent } from "../host/types.js";
import { weightedSum } from "../tensor/ops.js";
import { cycled } from "../tensor/parts.js";
import { resizeLatent } from "../tensor/resize.js";
import type { Tensor } from "../tensor/tensor.js";

/**
 * A latent in height and width of another one: its middle of the other's proportions, resized. All axes between batch and
 * height must be equal; `input` names the latent's input in messages.
 */
export function fitted(x: Tensor, like: Tensor, input: string, method: "bilinear" | "bicubic" = "bilinear"): Tensor {
  const inner = ({ shape }: Tensor) => shape.slice(1, shape.length === 3 ? undefined : -2).join(", ");
  if (x.shape.length !== like.shape.length || inner(x) !== inner(like) || (x.size === 0) !== (like.size === 0)) {
    const sides = like.shape.length === 3 ? inner(like) : `${inner(like)}, H, W`;
    const cells = (x.size === 0) === (like.size === 0) ? "" : ` with${like.size === 0 ? "out" : ""} cells`;
    const expected = `a latent of shape [batch, ${sides}]${cells}`;
    throw inputError("input.invalid", { input }, expected, x);
  }
  const [height = 0, width = 0] = like.shape.slice(-2);
  if (x.size === 0 || x.shape.slice(1).join() === like.shape.slice(1).join()) return x;
  return resizeLatent(x, { method, height, width, crop: "center" });
}

/** The first latent plus `factor` times the second, which is fitted to it; its batch is repeated or cut. */
export function added(first: Latent, second: Latent, factor: number): Latent {
  const { samples } = first;
  const other = cycled(fitted(second.samples, samples, "samples2"), samples.shape[0]!);
  const terms = [[1, samples] as const, [factor, other] as const];
  return { ...first, samples: weightedSum(terms) };
}

/** The latent as [B, planes, H, W]: axes between channels and height (frames) count as channels. */
export function planes(tensor: Tensor): Tensor {
  const channels = tensor.shape.slice(1, -2).reduce((product, side) => product * side, 1);
  return tensor.reshape([tensor.shape[0]!, channels, ...tensor.shape.slice(-2)]);
}

/** Whether a noise mask is the one of all items of its latent. */
export const isSingleMask = ({ shape }: Tensor): boolean => shape.length < 3 || shape[0] === 1;

/** Indices of a latent's items among the noises of a seed: its own `batch_index`, else 0, 1, 2 … */
export const batchIndexOf = ({ samples, batch_index }: Latent): number[] =>
  batch_index ?? Array.from({ length: samples.shape[0]! }, (_, index) => index);
