import { inputError } from "../../base/errors.js";
import { channelOf, inverted, widened } from "../../tensor/channels.js";
import { composed, type Layer, PORTER_DUFF_MODES } from "../../tensor/image/blend.js";
import { clampToUnit, extremeInDiamond, extremeInSquare } from "../../tensor/image/filters.js";
import { resizeBilinear } from "../../tensor/ops.js";
import { cropped, narrowed } from "../../tensor/parts.js";
import { Tensor } from "../../tensor/tensor.js";
import { warnOfClips } from "../bends.js";
import { defineNode } from "../define.js";
import { boolean, choice, float, image, int, mask } from "../inputs.js";
import { channelsOf, fittedImage, masksOf, offset, side } from "./image.js";

const CHANNELS = ["red", "green", "blue", "alpha"] as const;

export const maskNodes = [
  defineNode({
    key: "CropMask",
    category: "mask",
    description: "A region of a mask, clipped at its borders.",
    inputs: { mask: mask(), x: offset(), y: offset(), width: side(), height: side() },
    outputs: { MASK: "MASK" },
    run: ({ mask, x, y, width, height }, { log }) => {
      const masks = masksOf("mask", mask);
      const [, inHeight, inWidth] = masks.shape as readonly [number, number, number];
      const [left, top] = [Math.min(x, inWidth), Math.min(y, inHeight)];
      const region = { top, left, height: Math.min(height, inHeight - top), width: Math.min(width, inWidth - left) };
      const sizes = { width: [width, region.width], height: [height, region.height] } as const;
      warnOfClips("mask", { x: [x, left], y: [y, top], ...sizes }, log);
      return { MASK: cropped(masks, 1, region) };
    },
  }),
  // decisions: Nodes correct the reference's faults
  defineNode({
    key: "FeatherMask",
    category: "mask",
    description: "Fades a mask out towards its edges, over a number of pixels at each.",
    inputs: { mask: mask(), left: offset(), top: offset(), right: offset(), bottom: offset() },
    outputs: { MASK: "MASK" },
    run: ({ mask, left, top, right, bottom }) => {
      const result = masksOf("mask", mask).clone();
      const [batch, height, width] = result.shape as readonly [number, number, number];
      const [down, across] = [ramp(height, top, bottom), ramp(width, left, right)];
      for (let line = 0, at = 0; line < batch * height; line++) {
        const factor = down[line % height]!;
        for (let x = 0; x < width; x++) result.data[at++]! *= factor * across[x]!;
      }
      return { MASK: result };
    },
  }),
  defineNode({
    key: "GrowMask",
    category: "mask",
    description: "Grows a mask by a number of pixels, or shrinks it by a negative one.",
    inputs: {
      mask: mask(),
      expand: int({ default: 0, min: -16384, max: 16384 }),
      tapered_corners: boolean({ default: true }),
    },
    outputs: { MASK: "MASK" },
    run: ({ mask, expand, tapered_corners }) => {
      const masks = masksOf("mask", mask);
      const reach = Math.abs(expand);
      if (tapered_corners) return { MASK: extremeInDiamond(masks, reach, expand > 0) };
      const square = extremeInSquare(masks.reshape([...masks.shape, 1]), 2 * reach + 1, expand > 0);
      return { MASK: square.reshape(masks.shape) };
    },
  }),
  defineNode({
    key: "ImageColorToMask",
    category: "mask",
    description:
      "1 where an image has a colour, compared in 8 bits; the colour is the number 65536 * red + 256 * green + blue.",
    inputs: { image: image(), color: int({ default: 0, min: 0, max: 0xffffff }) },
    outputs: { MASK: "MASK" },
    run: ({ image, color }) => {
      const { data, shape } = channelsOf("image", image, 3);
      const mask = Tensor.zeros(shape.slice(0, 3));
      const [red, green, blue] = [color >> 16, (color >> 8) & 255, color & 255];
      for (let at = 0, from = 0; at < mask.size; at++, from += 3) {
        const isColour =
          byteOf(data[from]!) === red && byteOf(data[from + 1]!) === green && byteOf(data[from + 2]!) === blue;
        if (isColour) mask.data[at] = 1;
      }
      return { MASK: mask };
    },
  }),
  defineNode({
    key: "ImageToMask",
    displayName: "Convert Image to Mask",
    category: "mask",
    description: "One channel of an image as a mask.",
    inputs: { image: image(), channel: choice(CHANNELS) },
    outputs: { MASK: "MASK" },
    run: ({ image, channel }) => {
      const index = CHANNELS.indexOf(channel);
      if (index < image.shape[3]!) return { MASK: channelOf(image, index) };
      throw inputError("tensor.bad-shape", { input: "image" }, `an image with a channel "${channel}"`, image);
    },
  }),
  defineNode({
    key: "InvertMask",
    displayName: "Invert Mask",
    category: "mask",
    description: "1 minus the mask.",
    inputs: { mask: mask() },
    outputs: { MASK: "MASK" },
    run: ({ mask }) => ({ MASK: inverted(mask) }),
  }),
  defineNode({
    key: "JoinImageWithAlpha",
    displayName: "Join Image with Alpha",
    category: "mask/compositing",
    description: "Adds a mask of transparency to images as alpha; the shorter batch decides how many.",
    inputs: { image: image(), alpha: mask() },
    outputs: { IMAGE: "IMAGE" },
    run: ({ image, alpha }) => {
      const { data: colours, shape } = channelsOf("image", image, 3);
      const [images, height, width] = shape as readonly [number, number, number];
      const masks = masksOf("alpha", alpha);
      const batch = Math.min(images, masks.shape[0]!);
      const isSized = masks.shape[1] === height && masks.shape[2] === width;
      const { data: transparency } = isSized ? masks : resizeBilinear(narrowed(masks, 0, 0, batch), height, width);
      const out = Tensor.unfilled([batch, height, width, 4]);
      for (let pixel = 0, to = 0; to < out.size; pixel++) {
        for (let k = 0; k < 3; k++) out.data[to++] = colours[3 * pixel + k]!;
        out.data[to++] = 1 - transparency[pixel]!;
      }
      return { IMAGE: out };
    },
  }),
  defineNode({
    key: "MaskComposite",
    category: "mask",
    description: "Combines a mask with another one at a position, by arithmetic or logic, and clamps it to 0…1.",
    inputs: {
      destination: mask(),
      source: mask(),
      x: offset(),
      y: offset(),
      operation: choice(["multiply", "add", "subtract", "and", "or", "xor"]),
    },
    outputs: { MASK: "MASK" },
    run: ({ destination, source, x, y, operation }) => {
      const [result, from] = [masksOf("destination", destination).clone(), masksOf("source", source)];
      if (from.shape[0] !== 1 && from.shape[0] !== result.shape[0]) {
        throw inputError("tensor.bad-shape", { input: "source" }, masksFor(result.shape[0]!), source);
      }
      combine(result, from, x, y, operation);
      return { MASK: clampToUnit(result) };
    },
  }),
  defineNode({
    key: "MaskToImage",
    displayName: "Convert Mask to Image",
    category: "mask",
    description: "A mask as a grey image.",
    inputs: { mask: mask() },
    outputs: { IMAGE: "IMAGE" },
    run: ({ mask }) => ({ IMAGE: widened(masksOf("mask", mask), 3) }),
  }),
  defineNode({
    key: "PorterDuffImageComposite",
    displayName: "Porter-Duff Image Composite",
    category: "mask/compositing",
    description: "Composites two images with a Porter-Duff operator; their masks hold transparency.",
    inputs: {
      source: image(),
      source_alpha: mask(),
      destination: image(),
      destination_alpha: mask(),
      mode: choice(PORTER_DUFF_MODES, { default: "DST" }),
    },
    outputs: [
      { name: "IMAGE", type: "IMAGE" },
      { name: "MASK", type: "MASK" },
    ],
    run: ({ source, source_alpha, destination, destination_alpha, mode }) => {
      const images = [channelsOf("source", source, 3), channelsOf("destination", destination, 3)] as const;
      const masks = [masksOf("source_alpha", source_alpha), masksOf("destination_alpha", destination_alpha)] as const;
      const batch = Math.min(...[...images, ...masks].map(({ shape }) => shape[0]!));
      const [, height, width] = images[1].shape as readonly [number, number, number];
      const top = layer(images[0], masks[0], batch, height, width);
      const { image, transparency } = composed(top, layer(images[1], masks[1], batch, height, width), mode);
      return { IMAGE: image, MASK: transparency };
    },
  }),
  defineNode({
    key: "SolidMask",
    displayName: "Solid Mask",
    category: "mask",
    description: "A mask of one value.",
    inputs: { value: float({ default: 1, min: 0, max: 1, step: 0.01 }), width: side(), height: side() },
    outputs: { MASK: "MASK" },
    run: ({ value, width, height }) => ({ MASK: Tensor.full([1, height, width], value) }),
  }),
  defineNode({
    key: "SplitImageWithAlpha",
    displayName: "Split Image with Alpha",
    category: "mask/compositing",
    description: "Splits an image into its colours and a mask of its transparency.",
    inputs: { image: image() },
    outputs: [
      { name: "IMAGE", type: "IMAGE" },
      { name: "MASK", type: "MASK" },
    ],
    run: ({ image }) => ({
      IMAGE: channelsOf("image", image, 3),
      MASK: image.shape[3] === 4 ? inverted(channelOf(image, 3)) : Tensor.zeros(image.shape.slice(0, 3)),
    }),
  }),
  defineNode({
    key: "ThresholdMask",
    category: "mask",
    description: "1 where a mask is above a value, else 0.",
    inputs: { mask: mask(), value: float({ default: 0.5, min: 0, max: 1, step: 0.01 }) },
    outputs: { MASK: "MASK" },
    run: ({ mask, value }) => {
      const result = Tensor.zeros(mask.shape);
      const [from, limit] = [mask.data, Math.fround(value)];
      for (let at = 0; at < from.length; at++) if (from[at]! > limit) result.data[at] = 1;
      return { MASK: result };
    },
  }),
] as const;

/** Factor of each position of a line of n: it rises over the first and the last ones. */
function ramp(n: number, before: number, after: number): Float64Array {
  const [first, last] = [Math.min(before, n), Math.min(after, n)];
  const rise = (step: number, steps: number): number => (step < steps ? (step + 1) / steps : 1);
  return Float64Array.from({ length: n }, (_, at) => rise(at, first) * rise(n - 1 - at, last));
}

/** The nearest byte, halves to the even one; NaN is 0. */
function byteOf(value: number): number {
  const scaled = Math.fround(255 * value);
  if (!(scaled > 0)) return 0;
  if (scaled >= 255) return 255;
  const floor = Math.floor(scaled);
  return scaled - floor > 0.5 || (scaled - floor === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}

/** Whether a value counts as set: it rounds to a number other than 0, halves to the even one. */
const isSet = (value: number): boolean => Math.abs(value) > 0.5;

const OPERATIONS = {
  multiply: (d, s) => d * s,
  add: (d, s) => d + s,
  subtract: (d, s) => d - s,
  and: (d, s) => Number(isSet(d) && isSet(s)),
  or: (d, s) => Number(isSet(d) || isSet(s)),
  xor: (d, s) => Number(isSet(d) !== isSet(s)),
} as const satisfies Record<string, (destination: number, source: number) => number>;

/** Changes the part of `into` that the source covers at (x, y). */
function combine(into: Tensor, source: Tensor, x: number, y: number, operation: keyof typeof OPERATIONS): void {
  const [batch, height, width] = into.shape as readonly [number, number, number];
  const [sources, sourceHeight, sourceWidth] = source.shape as readonly [number, number, number];
  const combined: (destination: number, source: number) => number = OPERATIONS[operation];
  const [bottom, right] = [Math.min(y + sourceHeight, height), Math.min(x + sourceWidth, width)];
  for (let item = 0; item < batch; item++) {
    for (let row = y; row < bottom; row++) {
      let from = ((sources === 1 ? 0 : item) * sourceHeight + row - y) * sourceWidth;
      const end = (item * height + row) * width + right;
      for (let to = end - right + x; to < end; to++) into.data[to] = combined(into.data[to]!, source.data[from++]!);
    }
  }
}

const masksFor = (count: number): string => (count === 1 ? "one mask" : `1 or ${count} masks`);

/** The first `batch` pictures and masks, cropped and resized to a size. */
function layer(image: Tensor, mask: Tensor, batch: number, height: number, width: number): Layer {
  const masks = narrowed(mask.reshape([...mask.shape, 1]), 0, 0, batch);
  return {
    image: fittedImage(narrowed(image, 0, 0, batch), height, width, "bicubic"),
    transparency: fittedImage(masks, height, width, "bicubic").reshape([batch, height, width]),
  };
}
