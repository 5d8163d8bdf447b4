import { inputError } from "../base/errors.js";
import { firstChannels } from "../tensor/channels.js";
import { resizeImage } from "../tensor/resize.js";
import { fourSides } from "../tensor/shape.js";
import type { Tensor } from "../tensor/tensor.js";
import { int } from "./inputs.js";

/** Input for a side of a picture in pixels, in ComfyUI's limits. */
export const side = (defaultSide = 512) => int({ default: defaultSide, min: 1, max: 16384 });
/** Input for a position or a margin in pixels, in ComfyUI's limits. */
export const offset = (defaultOffset = 0) => int({ default: defaultOffset, min: 0, max: 16384 });

/** First `count` channels of an image; fails where it has fewer. */
export function channelsOf(input: string, image: Tensor, count: number): Tensor {
  const [, , , channels] = fourSides(input, image, "[B, H, W, C]");
  if (channels >= count) return firstChannels(image, count);
  throw inputError("tensor.bad-shape", { input }, `an image with at least ${count} channels`, image);
}

/** A mask [B, 1, H, W] or [B, H, W] as [B, H, W]; fails where it has no pixels. */
export function masksOf(input: string, mask: Tensor): Tensor {
  const [height = 0, width = 0] = mask.shape.slice(-2);
  if (height > 0 && width > 0) return mask.reshape([mask.size / (height * width), height, width]);
  throw inputError("tensor.bad-shape", { input }, "a mask [B, H, W] or [H, W] with pixels", mask);
}

/** Fails unless two batches are equal, or one of them has a single entry. */
export function requireBatch(input: string, value: Tensor, other: Tensor): void {
  const [own, expected] = [value.shape[0]!, other.shape[0]!];
  if (own === expected || own === 1 || expected === 1) return;
  throw inputError("tensor.bad-shape", { input }, `a batch of ${expected} or 1`, value);
}

/** An image in another size, after its middle in the proportions of that size; itself where it has the size. */
export function fittedImage(image: Tensor, height: number, width: number, method: "bilinear" | "bicubic"): Tensor {
  const [, ownHeight, ownWidth] = fourSides("image", image, "[B, H, W, C]");
  if (ownHeight === height && ownWidth === width) return image;
  return resizeImage(image, { method, height, width, crop: "center" });
}
