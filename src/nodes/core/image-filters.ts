import { inputError } from "../../base/errors.js";
import { inverted, rgbOf, widened, yuvOf } from "../../tensor/channels.js";
import { blended } from "../../tensor/image/blend.js";
import {
  cannyEdges,
  clampToUnit,
  convolved,
  extremeInSquare,
  gaussianWeights,
  sharpened,
} from "../../tensor/image/filters.js";
import { DITHERS, quantized } from "../../tensor/image/quantize.js";
import { axpy } from "../../tensor/ops.js";
import { mirrored, turned, upsideDown } from "../../tensor/parts.js";
import { createGenerator } from "../../tensor/random.js";
import type { Tensor } from "../../tensor/tensor.js";
import { defineNode } from "../define.js";
import { choice, float, image, int, seed } from "../inputs.js";
import { channelsOf, fittedImage, requireBatch } from "./image.js";

// decisions: Some samplers and nodes are unchecked
const threshold = (value: number) => float({ default: value, min: 0.01, max: 0.99, step: 0.01 });

export const ROTATIONS = ["none", "90 degrees", "180 degrees", "270 degrees"] as const;

const OPERATIONS = ["erode", "dilate", "open", "close", "gradient", "bottom_hat", "top_hat"] as const;

export const imageFilterNodes = [
  defineNode({
    key: "Canny",
    category: "image/preprocessors",
    description: "Edges of an image, white on black: strong ones, and weak ones that are connected to them.",
    inputs: { image: image(), low_threshold: threshold(0.4), high_threshold: threshold(0.8) },
    outputs: { IMAGE: "IMAGE" },
    run: ({ image, low_threshold, high_threshold }) => {
      if (low_threshold > high_threshold) {
        const expected = `at most high_threshold, ${high_threshold}`;
        throw inputError("value.out-of-range", { input: "low_threshold" }, expected, low_threshold);
      }
      return { IMAGE: widened(cannyEdges(image, low_threshold, high_threshold), 3) };
    },
  }),
  defineNode({
    key: "ImageAddNoise",
    displayName: "Image Add Noise",
    category: "image",
    description: "Adds Gaussian noise with the standard deviation strength to an image, and clamps it to 0…1.",
    inputs: { image: image(), seed: seed(), strength: float({ default: 0.5, min: 0, max: 1, step: 0.01 }) },
    outputs: { IMAGE: "IMAGE" },
    run: ({ image, seed, strength }) => {
      const noise = createGenerator({ seed }).randn(image.shape);
      return { IMAGE: clampToUnit(axpy(image, noise, strength, noise)) };
    },
  }),
  defineNode({
    key: "ImageBlend",
    displayName: "Image Blend",
    category: "image/postprocessing",
    description: "Blends two images; the second is cropped and resized to the first.",
    inputs: {
      image1: image(),
      image2: image(),
      blend_factor: float({ default: 0.5, min: 0, max: 1, step: 0.01 }),
      blend_mode: choice(["normal", "multiply", "screen", "overlay", "soft_light", "difference"]),
    },
    outputs: { IMAGE: "IMAGE" },
    run: ({ image1, image2, blend_factor, blend_mode }) => {
      const [, height, width, channels] = image1.shape as readonly [number, number, number, number];
      requireBatch("image2", image2, image1);
      const second = fittedImage(channelsOf("image2", image2, channels), height, width, "bicubic");
      return { IMAGE: blended(image1, second, blend_mode, blend_factor) };
    },
  }),
  defineNode({
    key: "ImageBlur",
    displayName: "Image Blur",
    category: "image/postprocessing",
    description: "Blurs an image with a Gaussian; sigma is a multiple of the radius.",
    inputs: {
      image: image(),
      blur_radius: int({ default: 1, min: 1, max: 31 }),
      sigma: float({ default: 1, min: 0.1, max: 10, step: 0.1 }),
    },
    outputs: { IMAGE: "IMAGE" },
    run: ({ image, blur_radius, sigma }) => ({
      IMAGE: convolved(image, gaussianWeights(2 * blur_radius + 1, sigma, 1)),
    }),
  }),
  defineNode({
    key: "ImageFlip",
    displayName: "Image Flip",
    category: "image/transform",
    description: "Flips an image vertically or horizontally.",
    inputs: { image: image(), flip_method: choice(["x-axis: vertically", "y-axis: horizontally"]) },
    outputs: { IMAGE: "IMAGE" },
    run: ({ image, flip_method }) => ({
      IMAGE: flip_method.startsWith("x") ? upsideDown(image, 1) : mirrored(image, 1),
    }),
  }),
  defineNode({
    key: "ImageInvert",
    displayName: "Invert Image",
    category: "image",
    description: "1 minus the image.",
    inputs: { image: image() },
    outputs: { IMAGE: "IMAGE" },
    run: ({ image }) => ({ IMAGE: inverted(image) }),
  }),
  defineNode({
    key: "ImageQuantize",
    displayName: "Image Quantize",
    category: "image/postprocessing",
    description: "Reduces each image to a number of colours, chosen by median cut.",
    inputs: { image: image(), colors: int({ default: 256, min: 1, max: 256 }), dither: choice(DITHERS) },
    outputs: { IMAGE: "IMAGE" },
    run: ({ image, colors, dither }) => ({ IMAGE: quantized(channelsOf("image", image, 3), colors, dither) }),
  }),
  defineNode({
    key: "ImageRGBToYUV",
    category: "image/batch",
    description: "Luma and the two colour differences of an image, as grey images.",
    inputs: { image: image() },
    outputs: [
      { name: "Y", type: "IMAGE" },
      { name: "U", type: "IMAGE" },
      { name: "V", type: "IMAGE" },
    ],
    run: ({ image }) => {
      const [Y, U, V] = yuvOf(channelsOf("image", image, 3));
      return { Y, U, V };
    },
  }),
  defineNode({
    key: "ImageRotate",
    displayName: "Image Rotate",
    category: "image/transform",
    description: "Rotates an image clockwise.",
    inputs: { image: image(), rotation: choice(ROTATIONS) },
    outputs: { IMAGE: "IMAGE" },
    run: ({ image, rotation }) => ({ IMAGE: turned(image, 1, ROTATIONS.indexOf(rotation)) }),
  }),
  defineNode({
    key: "ImageSharpen",
    displayName: "Image Sharpen",
    category: "image/postprocessing",
    description:
      "Adds 10 * alpha times the difference between an image and its Gaussian blur; sigma is a multiple of the radius.",
    inputs: {
      image: image(),
      sharpen_radius: int({ default: 1, min: 1, max: 31 }),
      sigma: float({ default: 1, min: 0.1, max: 10, step: 0.01 }),
      alpha: float({ default: 1, min: 0, max: 5, step: 0.01 }),
    },
    outputs: { IMAGE: "IMAGE" },
    run: ({ image, sharpen_radius, sigma, alpha }) => ({
      IMAGE: sharpened(image, gaussianWeights(2 * sharpen_radius + 1, sigma, 1), 10 * alpha),
    }),
  }),
  defineNode({
    key: "ImageYUVToRGB",
    category: "image/batch",
    description: "An image from luma and two colour differences, each the mean of an image's channels.",
    inputs: { Y: image(), U: image(), V: image() },
    outputs: { IMAGE: "IMAGE" },
    run: ({ Y, U, V }) => {
      const size = Y.shape.slice(0, 3);
      for (const [input, value] of Object.entries({ U, V })) {
        if (value.shape.slice(0, 3).join() === size.join()) continue;
        throw inputError("tensor.bad-shape", { input }, `an image of shape [${size.join(", ")}, C]`, value);
      }
      return { IMAGE: rgbOf(Y, U, V) };
    },
  }),
  defineNode({
    key: "Morphology",
    displayName: "ImageMorphology",
    category: "image/postprocessing",
    description: "Erodes or dilates an image, or combines both, with a square kernel.",
    inputs: {
      image: image(),
      operation: choice(OPERATIONS),
      kernel_size: int({ default: 3, min: 3, max: 999 }),
    },
    outputs: { IMAGE: "IMAGE" },
    run: ({ image, operation, kernel_size }) => ({ IMAGE: changed(image, operation, kernel_size) }),
  }),
] as const;

function changed(image: Tensor, operation: (typeof OPERATIONS)[number], side: number): Tensor {
  const dilated = (x: Tensor): Tensor => extremeInSquare(x, side, true);
  const eroded = (x: Tensor): Tensor => extremeInSquare(x, side, false);
  const less = (x: Tensor, y: Tensor): Tensor => axpy(x, y, -1);
  if (operation === "erode") return eroded(image);
  if (operation === "dilate") return dilated(image);
  if (operation === "open") return dilated(eroded(image));
  if (operation === "close") return eroded(dilated(image));
  if (operation === "gradient") return less(dilated(image), eroded(image));
  if (operation === "bottom_hat") return less(eroded(dilated(image)), image);
  return less(image, dilated(eroded(image)));
}
