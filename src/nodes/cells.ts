import { inputError } from "../base/errors.js";
import { firstChannels } from "../tensor/channels.js";
import { narrowed } from "../tensor/parts.js";
import type { Tensor } from "../tensor/tensor.js";

/** Side of a latent cell in pixels. */
export const CELL = 8;

/** Cuts two axes down to whole cells, as much on either side. */
export function wholeCells(x: Tensor, heightAxis: number, widthAxis: number): Tensor {
  const cut = (y: Tensor, axis: number) => {
    const side = y.shape.at(axis) ?? 0;
    return narrowed(y, axis, Math.floor((side % CELL) / 2), side - (side % CELL));
  };
  return cut(cut(x, heightAxis), widthAxis);
}

/** The colours of an image [B, H, W, C] for a vae; throws for one that has fewer than three, or no whole cell. */
export function coloursOf(image: Tensor, input: string): Tensor {
  const [, height = 0, width = 0, channels = 0] = image.shape;
  if (channels >= 3 && height >= CELL && width >= CELL) return firstChannels(image, 3);
  throw inputError(
    "input.invalid",
    { input },
    `an image of 3 or 4 channels and at least ${CELL} x ${CELL} pixels`,
    image,
  );
}
