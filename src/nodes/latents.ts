import { inputError } from "../base/errors.js";
import type { Latent, Vae, Warn } from "../host/types.js";
import { firstChannels } from "../tensor/channels.js";
import { weightedSum } from "../tensor/ops.js";
import { cropped, cycled } from "../tensor/parts.js";
import { resizeLatent } from "../tensor/resize.js";
import type { Tensor } from "../tensor/tensor.js";
import { type InputSpec, int } from "./inputs.js";

/**
 * A latent with the height and width of another one: its middle in the other's proportions, resized. All axes between batch and
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

/** Whether one noise mask serves all items of its latent. */
export const isSingleMask = ({ shape }: Tensor): boolean => shape.length < 3 || shape[0] === 1;

/** Indices of a latent's items among the noises of a seed: its own `batch_index`, else 0, 1, 2 … */
export const batchIndexOf = ({ samples, batch_index }: Latent): number[] =>
  batch_index ?? Array.from({ length: samples.shape[0]! }, (_, index) => index);

/** Side of a latent cell in pixels, in nearly all models. */
export const CELL = 8;

/** An INT input in pixels; the node uses whole cells. */
export const inCells = <Spec extends InputSpec<number>>(spec: Spec, cell: number = CELL): Spec => ({
  ...spec,
  used: (pixels: number) => pixels - (pixels % cell),
});

/** Input for a position in pixels; the node uses whole cells. */
export const cellOffset = () => inCells(int({ default: 0, min: 0, max: 16384, step: CELL }));

/** Cuts an axis and the one after it down to whole cells of a vae, as much on either side. */
export function wholeCells(x: Tensor, axis: number, { cell = CELL }: Cells): Tensor {
  const [height = 0, width = 0] = [x.shape.at(axis), x.shape.at(axis + 1)];
  const margin = (side: number): number => Math.floor((side % cell) / 2);
  const sides = { height: whole(height, cell), width: whole(width, cell) };
  return cropped(x, axis, { top: margin(height), left: margin(width), ...sides });
}

/** Sides of a vae's cells. */
type Cells = Pick<Vae, "cell">;

const whole = (side: number, cell: number): number => side - (side % cell);

/** Warns of an image that is cut down to whole cells of a vae. */
export function warnOfCut(image: Tensor, input: string, { cell = CELL }: Cells, log: Warn): void {
  const [, height = 0, width = 0] = image.shape;
  const [rows, columns] = [whole(height, cell), whole(width, cell)];
  if (rows === height && columns === width) return;
  const cut = `cropped from ${width} x ${height} to ${columns} x ${rows} pixels`;
  log(`input "${input}": ${cut}: the VAE needs multiples of ${cell}.`);
}

/** The colours of an image [B, H, W, C] for a vae; throws for an image with fewer than three, or without a whole cell. */
export function coloursOf(image: Tensor, input: string, { cell = CELL }: Cells): Tensor {
  const [, height = 0, width = 0, channels = 0] = image.shape;
  if (channels >= 3 && height >= cell && width >= cell) return firstChannels(image, 3);
  const expected = `an image of 3 or 4 channels and at least ${cell} x ${cell} pixels`;
  throw inputError("input.invalid", { input }, expected, image);
}
