import { inputError } from "../../base/errors.js";
import { joined, narrowed, repeated } from "../../tensor/parts.js";
import { IMAGE_METHODS, LATENT_METHODS, resizeImage, resizeLatent } from "../../tensor/resize.js";
import { roundHalfEven } from "../../tensor/rounding.js";
import { fourSides } from "../../tensor/shape.js";
import { Tensor } from "../../tensor/tensor.js";
import { defineNode } from "../define.js";
import { boolean, choice, float, image, int, latent } from "../inputs.js";
import { CELL } from "../latents.js";

const newImageSide = () => int({ default: 512, min: 0, max: 16384, step: 1 });

const evenWidth = (pixels: number): number => pixels + (pixels % 2);

/** Smallest side of a result of LatentUpscale, in pixels. */
const LEAST_LATENT_SIDE = 64;

const newLatentSide = () => ({
  ...int({ default: 512, min: 0, max: 16384, step: CELL }),
  used: (pixels: number) => (pixels === 0 ? 0 : Math.floor(Math.max(LEAST_LATENT_SIDE, pixels) / CELL) * CELL),
});

export const imageScaleNodes = [
  defineNode({
    key: "ImageScaleBy",
    displayName: "Upscale Image By",
    category: "image/upscaling",
    description: "Resizes an image by a factor.",
    inputs: {
      image: image(),
      upscale_method: choice(IMAGE_METHODS),
      scale_by: float({ default: 1, min: 0.01, max: 8, step: 0.01 }),
    },
    outputs: { IMAGE: "IMAGE" },
    run: ({ image, upscale_method: method, scale_by }) => {
      const [, height, width] = fourSides("ImageScaleBy", image, "[B, H, W, C]");
      const sides = scaledSides({ node: "ImageScaleBy", input: "scale_by" }, [height, width], scale_by);
      return { IMAGE: resizeImage(image, { method, ...sides }) };
    },
  }),
  defineNode({
    key: "ImageScaleToMaxDimension",
    displayName: "Scale Image to Max Dimension",
    category: "image/upscaling",
    description: "Resizes an image so that its longer side has the length largest_size.",
    inputs: {
      image: image(),
      upscale_method: choice(["area", "lanczos", "bilinear", "nearest-exact", "bicubic"]),
      largest_size: int({ default: 512, min: 0, max: 16384, step: 1 }),
    },
    outputs: { IMAGE: "IMAGE" },
    run: ({ image, upscale_method: method, largest_size: size }) => {
      const [, rows, columns] = fourSides("ImageScaleToMaxDimension", image, "[B, H, W, C]");
      const height = columns > rows ? roundHalfEven((rows / columns) * size) : size;
      const width = rows > columns ? roundHalfEven((columns / rows) * size) : size;
      if (height === 0 || width === 0) {
        const expected = `a size at which both sides of ${columns} x ${rows} keep at least one pixel`;
        const at = { node: "ImageScaleToMaxDimension", input: "largest_size" };
        throw inputError("value.out-of-range", at, expected, size);
      }
      return { IMAGE: resizeImage(image, { method, height, width }) };
    },
  }),
  defineNode({
    key: "ImageScaleToTotalPixels",
    displayName: "Scale Image to Total Pixels",
    category: "image/upscaling",
    description:
      "Resizes an image to a number of pixels, in units of 1024 x 1024; sides are multiples of resolution_steps.",
    inputs: {
      image: image(),
      upscale_method: choice(IMAGE_METHODS),
      megapixels: float({ default: 1, min: 0.01, max: 16, step: 0.01 }),
      resolution_steps: int({ optional: true, default: 1, min: 1, max: 256 }),
    },
    outputs: { IMAGE: "IMAGE" },
    run: ({ image, upscale_method: method, megapixels, resolution_steps: step }) => {
      const [, rows, columns] = fourSides("ImageScaleToTotalPixels", image, "[B, H, W, C]");
      const factor = Math.sqrt((megapixels * 1024 * 1024) / (columns * rows));
      const [height = 0, width = 0] = [rows, columns].map((side) => roundHalfEven((side * factor) / step) * step);
      if (height === 0 || width === 0) {
        const expected = `enough pixels for both sides of a ${columns} x ${rows} picture to be at least ${step}`;
        const at = { node: "ImageScaleToTotalPixels", input: "megapixels" };
        throw inputError("value.out-of-range", at, expected, megapixels);
      }
      return { IMAGE: resizeImage(image, { method, height, width }) };
    },
  }),
  defineNode({
    key: "ImageScale",
    displayName: "Upscale Image",
    category: "image/upscaling",
    description: "Resizes an image; a side of 0 keeps the aspect ratio.",
    inputs: {
      image: image(),
      upscale_method: choice(IMAGE_METHODS),
      width: newImageSide(),
      height: newImageSide(),
      crop: choice(["disabled", "center"]),
    },
    outputs: { IMAGE: "IMAGE" },
    run: ({ image, upscale_method: method, width, height, crop }) => {
      if (width === 0 && height === 0) return { IMAGE: image };
      const [, rows, columns] = fourSides("ImageScale", image, "[B, H, W, C]");
      const follow = (side: number): number => Math.max(1, roundHalfEven(side));
      const sides = {
        height: height === 0 ? follow((rows * width) / columns) : height,
        width: width === 0 ? follow((columns * height) / rows) : width,
      };
      return { IMAGE: resizeImage(image, { method, ...sides, crop }) };
    },
  }),
  defineNode({
    key: "RepeatImageBatch",
    category: "image/batch",
    description: "Repeats a batch of images.",
    inputs: { image: image(), amount: int({ default: 1, min: 1, max: 4096 }) },
    outputs: { IMAGE: "IMAGE" },
    run: ({ image, amount }) => ({ IMAGE: repeated(image, amount) }),
  }),
  defineNode({
    key: "FluxKontextImageScale",
    category: "advanced/conditioning/flux",
    description: "Resizes an image to the size of Flux.1 Kontext's training that is nearest to its proportions.",
    inputs: { image: image() },
    outputs: { IMAGE: "IMAGE" },
    run: ({ image }) => {
      const [, rows, columns] = fourSides("FluxKontextImageScale", image, "[B, H, W, C]");
      const distance = ([width, height]: readonly [number, number]): number =>
        Math.abs(columns / rows - width / height);
      const [width, height] = [...KONTEXT_SIZES, ...TURNED_SIZES].reduce((best, size) =>
        distance(size) < distance(best) ? size : best,
      );
      return { IMAGE: resizeImage(image, { method: "lanczos", width, height, crop: "center" }) };
    },
  }),
  defineNode({
    key: "ImageStitch",
    displayName: "Image Stitch",
    category: "image/transform",
    description:
      "Puts two images side by side or one above the other; the second is resized to match the first, or the smaller one gets black margins.",
    inputs: {
      image1: image(),
      direction: choice(["right", "down", "left", "up"], { default: "right" }),
      match_image_size: boolean({ default: true }),
      spacing_width: { ...int({ default: 0, min: 0, max: 1024, step: 2 }), used: evenWidth },
      spacing_color: choice(["white", "black", "red", "green", "blue"], { default: "white" }),
      image2: image({ optional: true }),
    },
    outputs: { IMAGE: "IMAGE" },
    run: ({ image1, image2, direction, match_image_size, spacing_width, spacing_color }) => {
      if (image2 === undefined) return { IMAGE: image1 };
      const along = direction === "left" || direction === "right" ? 2 : 1;
      const pair = [image1, match_image_size ? matched(image2, image1, along) : image2];
      const [batch, across, channels] = [0, 3 - along, 3].map((axis) => Math.max(...pair.map((x) => x.shape[axis]!)));
      const parts = pair.map((x) => opaque(centred(lengthened(x, batch!), 3 - along, across!), channels!));
      if (direction === "left" || direction === "up") parts.reverse();
      const width = evenWidth(spacing_width);
      const gap = parts[0]!.shape.with(along, width);
      if (width > 0) parts.splice(1, 0, filled(gap, [...SPACING_COLORS[spacing_color], 1].slice(0, channels)));
      return { IMAGE: joined(parts, along) };
    },
  }),
] as const;

export const latentScaleNodes = [
  defineNode({
    key: "LatentUpscaleBy",
    displayName: "Upscale Latent By",
    category: "latent",
    description: "Resizes a latent by a factor.",
    inputs: {
      samples: latent(),
      upscale_method: choice(LATENT_METHODS),
      scale_by: float({ default: 1.5, min: 0.01, max: 8, step: 0.01 }),
    },
    outputs: { LATENT: "LATENT" },
    run: ({ samples: from, upscale_method: method, scale_by }) => {
      const [height, width] = [from.samples.shape.at(-2)!, from.samples.shape.at(-1)!];
      const sides = scaledSides({ node: "LatentUpscaleBy", input: "scale_by" }, [height, width], scale_by);
      return { LATENT: { ...from, samples: resizeLatent(from.samples, { method, ...sides }) } };
    },
  }),
  defineNode({
    key: "LatentUpscale",
    displayName: "Upscale Latent",
    category: "latent",
    description: "Resizes a latent to a size in pixels; a side of 0 keeps the aspect ratio.",
    inputs: {
      samples: latent(),
      upscale_method: choice(LATENT_METHODS),
      width: newLatentSide(),
      height: newLatentSide(),
      crop: choice(["disabled", "center"]),
    },
    outputs: { LATENT: "LATENT" },
    run: ({ samples: from, upscale_method: method, width, height, crop }) => {
      if (width === 0 && height === 0) return { LATENT: from };
      const [high, wide] = sidesOf(from.samples.shape.at(-2)!, from.samples.shape.at(-1)!, height, width);
      const cells = { height: Math.floor(high / CELL), width: Math.floor(wide / CELL) };
      return { LATENT: { ...from, samples: resizeLatent(from.samples, { method, ...cells, crop }) } };
    },
  }),
] as const;

/** Widths and heights that Flux.1 Kontext was trained with; each stands for its rotated twin too. */
const KONTEXT_SIZES = [
  [672, 1568],
  [688, 1504],
  [720, 1456],
  [752, 1392],
  [800, 1328],
  [832, 1248],
  [880, 1184],
  [944, 1104],
  [1024, 1024],
] as [number, number][];

const TURNED_SIZES = KONTEXT_SIZES.map(([width, height]) => [height, width] as [number, number]);

const SPACING_COLORS = {
  white: [1, 1, 1],
  black: [0, 0, 0],
  red: [1, 0, 0],
  green: [0, 1, 0],
  blue: [0, 0, 1],
} as const;

/** An image as high (along the columns) or as wide (along the rows) as another one, in its own proportions. */
function matched(x: Tensor, other: Tensor, along: 1 | 2): Tensor {
  const [rows, columns] = [x.shape[1]!, x.shape[2]!];
  const [height, width] = [other.shape[1]!, other.shape[2]!];
  const sides =
    along === 2
      ? { height, width: Math.floor(height * (columns / rows)) }
      : { height: Math.floor(width / (columns / rows)), width };
  return resizeImage(x, { method: "lanczos", ...sides });
}

/** A batch of this length, filled by its last image. */
function lengthened(x: Tensor, batch: number): Tensor {
  const last = narrowed(x, 0, x.shape[0]! - 1, 1);
  return joined([x, ...Array<Tensor>(batch - x.shape[0]!).fill(last)], 0);
}

/** An image of this length along an axis, between margins of zeros. */
function centred(x: Tensor, axis: number, length: number): Tensor {
  const missing = length - x.shape[axis]!;
  const margins = [Math.floor(missing / 2), Math.ceil(missing / 2)];
  const [before, after] = margins.map((side) => (side === 0 ? [] : [Tensor.zeros(x.shape.with(axis, side))]));
  return joined([...before!, x, ...after!], axis);
}

/** An image with this number of channels; missing ones are 1. */
const opaque = (x: Tensor, channels: number): Tensor =>
  x.shape[3] === channels ? x : joined([x, Tensor.full(x.shape.with(3, channels - x.shape[3]!), 1)], 3);

/** Pixels of one colour. */
function filled(shape: readonly number[], color: readonly number[]): Tensor {
  const planes = color.map((value) => Tensor.full(shape.with(3, 1), value));
  return joined(planes, 3);
}

/** Sides in pixels; of two, a side of 0 follows the proportions. */
function sidesOf(rows: number, columns: number, height: number, width: number): [number, number] {
  const [high, wide] = [Math.max(LEAST_LATENT_SIDE, height), Math.max(LEAST_LATENT_SIDE, width)];
  if (width === 0) return [high, Math.max(LEAST_LATENT_SIDE, roundHalfEven((columns * high) / rows))];
  if (height === 0) return [Math.max(LEAST_LATENT_SIDE, roundHalfEven((rows * wide) / columns)), wide];
  return [high, wide];
}

/** Height and width times a factor, half to even. Fails with value.out-of-range if nothing would be left. */
function scaledSides(
  at: { node: string; input: string },
  [height, width]: readonly [height: number, width: number],
  factor: number,
): { height: number; width: number } {
  const sides = { height: roundHalfEven(height * factor), width: roundHalfEven(width * factor) };
  if (sides.height !== 0 && sides.width !== 0) return sides;
  throw inputError("value.out-of-range", at, `a larger factor: ${width} x ${height} would shrink to nothing`, factor);
}
