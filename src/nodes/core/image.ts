import { inputError } from "../../base/errors.js";
import { square } from "../../native/elementary.js";
import { asPlanes, firstChannels, widened } from "../../tensor/channels.js";
import { composite, resizeBilinear } from "../../tensor/ops.js";
import { cropped, joined, narrowed } from "../../tensor/parts.js";
import { resizeImage } from "../../tensor/resize.js";
import { fourSides } from "../../tensor/shape.js";
import { Tensor } from "../../tensor/tensor.js";
import { warnOfClips } from "../bends.js";
import { defineNode } from "../define.js";
import { boolean, image, int, mask } from "../inputs.js";

/** Input for a side of a picture in pixels, in ComfyUI's limits. */
export const side = (defaultSide = 512) => int({ default: defaultSide, min: 1, max: 16384 });

/** Input for a position or a margin in pixels, in ComfyUI's limits. */
export const offset = (defaultOffset = 0) => int({ default: defaultOffset, min: 0, max: 16384 });

export const imageNodes = [
  defineNode({
    key: "EmptyImage",
    category: "image",
    description: "Images of one colour, given as a number: 65536 * red + 256 * green + blue.",
    inputs: {
      width: side(),
      height: side(),
      batch_size: int({ default: 1, min: 1, max: 4096 }),
      color: int({ default: 0, min: 0, max: 0xffffff }),
    },
    outputs: { IMAGE: "IMAGE" },
    run: ({ width, height, batch_size, color }) => {
      const out = Tensor.unfilled([batch_size, height, width, 3]);
      out.data.set([color >> 16, (color >> 8) & 255, color & 255].map((byte) => byte / 255));
      for (let filled = 3; filled < out.size; filled *= 2) out.data.copyWithin(filled, 0, filled);
      return { IMAGE: out };
    },
  }),
  defineNode({
    key: "GetImageSize",
    displayName: "Get Image Size",
    category: "image",
    description: "Width, height and batch size of an image.",
    inputs: { image: image() },
    outputs: [
      { name: "width", type: "INT" },
      { name: "height", type: "INT" },
      { name: "batch_size", type: "INT" },
    ],
    run: ({ image }) => {
      const [batch_size, height, width] = image.shape;
      return { width, height, batch_size };
    },
  }),
  defineNode({
    key: "ImageBatch",
    displayName: "Batch Images",
    category: "image",
    description: "Two batches as one; the second is cropped and resized to the first one's size.",
    inputs: { image1: image(), image2: image() },
    outputs: { IMAGE: "IMAGE" },
    run: ({ image1, image2 }) => {
      const [, height, width, channels] = image1.shape as readonly [number, number, number, number];
      if (image2.shape[3] !== channels) {
        throw inputError("tensor.bad-shape", { input: "image2" }, `an image with ${channels} channels`, image2);
      }
      return { IMAGE: joined([image1, fittedImage(image2, height, width, "bilinear")], 0) };
    },
  }),
  defineNode({
    key: "ImageCompositeMasked",
    category: "image",
    description: "Pastes an image onto another at a position, optionally through a mask.",
    inputs: {
      destination: image(),
      source: image(),
      x: offset(),
      y: offset(),
      resize_source: boolean({ default: false }),
      mask: mask({ optional: true }),
    },
    outputs: { IMAGE: "IMAGE" },
    run: ({ destination, source, x, y, resize_source, mask }) => {
      const [, height, width, channels] = destination.shape as readonly [number, number, number, number];
      const coloured = channelsOf("source", source, channels);
      const pasted = resize_source ? resizeImage(coloured, { method: "bilinear", height, width }) : coloured;
      const through = mask === undefined ? undefined : maskFor(pasted, mask);
      const result = composite(asPlanes(destination), asPlanes(pasted), x * channels, y, through);
      return { IMAGE: result.reshape(destination.shape) };
    },
  }),
  defineNode({
    key: "ImageCrop",
    displayName: "Image Crop",
    category: "image/transform",
    description: "A region of an image, clipped at its borders; at least one pixel.",
    inputs: { image: image(), width: side(), height: side(), x: offset(), y: offset() },
    outputs: { IMAGE: "IMAGE" },
    run: ({ image, width, height, x, y }, { log }) => {
      const [, inHeight, inWidth] = image.shape as readonly [number, number, number, number];
      const [left, top] = [Math.max(Math.min(x, inWidth - 1), 0), Math.max(Math.min(y, inHeight - 1), 0)];
      const region = { top, left, height: Math.min(height, inHeight - top), width: Math.min(width, inWidth - left) };
      const sizes = { width: [width, region.width], height: [height, region.height] } as const;
      warnOfClips("image", { ...sizes, x: [x, left], y: [y, top] }, log);
      return { IMAGE: cropped(image, 1, region) };
    },
  }),
  defineNode({
    key: "ImageFromBatch",
    displayName: "Image From Batch",
    category: "image/batch",
    description: "A range of images of a batch.",
    inputs: {
      image: image(),
      batch_index: int({ default: 0, min: 0, max: 4095 }),
      length: int({ default: 1, min: 1, max: 4096 }),
    },
    outputs: { IMAGE: "IMAGE" },
    run: ({ image, batch_index, length }, { log }) => {
      const batch = image.shape[0]!;
      const first = Math.max(Math.min(batch - 1, batch_index), 0);
      const count = Math.min(batch - first, length);
      warnOfClips("batch", { batch_index: [batch_index, first], length: [length, count] }, log);
      return { IMAGE: narrowed(image, 0, first, count) };
    },
  }),
  defineNode({
    key: "ImagePadForOutpaint",
    displayName: "Pad Image for Outpainting",
    category: "image",
    description: "Adds grey margins to an image; the mask covers them and fades into the image.",
    inputs: {
      image: image(),
      left: offset(),
      top: offset(),
      right: offset(),
      bottom: offset(),
      feathering: offset(40),
    },
    outputs: [
      { name: "IMAGE", type: "IMAGE" },
      { name: "MASK", type: "MASK" },
    ],
    run: ({ image, left, top, right, bottom, feathering }) => {
      const [batch, height, width, channels] = image.shape as readonly [number, number, number, number];
      const [outHeight, outWidth] = [top + height + bottom, left + width + right];
      const grey = Tensor.full([batch, outHeight, outWidth, channels], 0.5);
      const padded = composite(asPlanes(grey), asPlanes(image), left * channels, top, undefined, asPlanes(grey));
      const inner = feather(height, width, { left, top, right, bottom }, feathering);
      const mask = composite(
        Tensor.full([1, 1, outHeight, outWidth], 1),
        inner.reshape([1, 1, height, width]),
        left,
        top,
      );
      return { IMAGE: padded.reshape(grey.shape), MASK: mask.reshape([1, outHeight, outWidth]) };
    },
  }),
] as const;

/** First `count` channels of an image; fails if it has fewer. */
export function channelsOf(input: string, image: Tensor, count: number): Tensor {
  const [, , , channels] = fourSides(input, image, "[B, H, W, C]");
  if (channels >= count) return firstChannels(image, count);
  throw inputError("tensor.bad-shape", { input }, `an image with at least ${count} channels`, image);
}

/** A mask [B, 1, H, W] or [B, H, W] as [B, H, W]; fails if it has no pixels. */
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

/** An image in another size, after its middle in the proportions of that size; itself if it has the size. */
export function fittedImage(image: Tensor, height: number, width: number, method: "bilinear" | "bicubic"): Tensor {
  const [, ownHeight, ownWidth] = fourSides("image", image, "[B, H, W, C]");
  if (ownHeight === height && ownWidth === width) return image;
  return resizeImage(image, { method, height, width, crop: "center" });
}

/** A mask of the source's size, with a value for each colour. */
function maskFor(source: Tensor, mask: Tensor): Tensor {
  const [, height, width, channels] = source.shape as readonly [number, number, number, number];
  const masks = masksOf("mask", mask);
  const sized = masks.shape[1] === height && masks.shape[2] === width ? masks : resizeBilinear(masks, height, width);
  return widened(sized, channels).reshape([sized.shape[0]!, height, width * channels]);
}

interface Margins {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/** Mask of the area to repaint: near each side that gains a margin, by the square of the distance to `feathering`. */
function feather(height: number, width: number, margins: Margins, feathering: number): Tensor {
  const mask = Tensor.zeros([1, height, width]);
  if (feathering === 0 || 2 * feathering >= height || 2 * feathering >= width) return mask;
  const distance = (at: number, size: number, before: number, after: number): number =>
    Math.min(before === 0 ? size : at, after === 0 ? size : size - at);
  for (let y = 0, to = 0; y < height; y++) {
    const down = distance(y, height, margins.top, margins.bottom);
    for (let x = 0; x < width; x++, to++) {
      const nearest = Math.min(down, distance(x, width, margins.left, margins.right));
      if (nearest < feathering) mask.data[to] = square((feathering - nearest) / feathering);
    }
  }
  return mask;
}
