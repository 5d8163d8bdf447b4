import { inputError } from "../../base/errors.js";
import { interpolateDirections } from "../../tensor/latents.js";
import { axpy, composite, resizeBilinear, scale } from "../../tensor/ops.js";
import { cropped, cycled, mirrored, turned, upsideDown } from "../../tensor/parts.js";
import { maskSides } from "../../tensor/shape.js";
import { Tensor } from "../../tensor/tensor.js";
import { warnOfClips } from "../bends.js";
import { defineNode } from "../define.js";
import { boolean, choice, float, int, latent, mask } from "../inputs.js";
import { added, CELL, cellOffset, fitted, inCells, planes } from "../latents.js";
import { ROTATIONS } from "./image-filters.js";

/** Input for a side of an image in pixels, in ComfyUI's limits; a latent cell has eight pixels. */
export const latentSide = () => inCells(int({ default: 512, min: 16, max: 16384, step: CELL }));

export const latentBatch = () => int({ default: 1, min: 1, max: 4096 });

const sd3Side = () => inCells(int({ default: 1024, min: 16, max: 16384, step: 16 }));

/** Pixels along a side of a cell of Flux.2's latents. */
const FLUX2_CELL = 16;

const flux2Side = () => inCells(int({ default: 1024, min: 16, max: 16384, step: FLUX2_CELL }), FLUX2_CELL);

export const emptyLatentNodes = [
  defineNode({
    key: "EmptyLatentImage",
    displayName: "Empty Latent Image",
    category: "latent",
    description: "A batch of empty latents of four channels; sizes are in pixels.",
    inputs: { width: latentSide(), height: latentSide(), batch_size: latentBatch() },
    outputs: { LATENT: "LATENT" },
    run: ({ width, height, batch_size }) => ({ LATENT: { samples: emptyLatent(batch_size, 4, height, width) } }),
  }),
  defineNode({
    key: "EmptySD3LatentImage",
    displayName: "Empty SD3 Latent Image",
    category: "latent/sd3",
    description: "A batch of empty latents of 16 channels; sizes are in pixels.",
    inputs: { width: sd3Side(), height: sd3Side(), batch_size: latentBatch() },
    outputs: { LATENT: "LATENT" },
    run: ({ width, height, batch_size }) => ({ LATENT: { samples: emptyLatent(batch_size, 16, height, width) } }),
  }),
  defineNode({
    key: "EmptyFlux2LatentImage",
    displayName: "Empty Flux 2 Latent",
    category: "latent",
    description: "A batch of empty latents of 128 channels, a cell for 16 x 16 pixels; sizes are in pixels.",
    inputs: { width: flux2Side(), height: flux2Side(), batch_size: latentBatch() },
    outputs: { LATENT: "LATENT" },
    run: ({ width, height, batch_size }) => {
      const [rows, columns] = [Math.floor(height / FLUX2_CELL), Math.floor(width / FLUX2_CELL)];
      return { LATENT: { samples: Tensor.zeros([batch_size, 128, rows, columns]) } };
    },
  }),
] as const;

/** Zeros [batch, channels, height / 8, width / 8], rounded down; sizes in pixels. */
export const emptyLatent = (batch: number, channels: number, height: number, width: number): Tensor =>
  Tensor.zeros([batch, channels, Math.floor(height / CELL), Math.floor(width / CELL)]);

const cropSide = () => inCells(int({ default: 512, min: 64, max: 16384, step: 8 }));

const FLIPS = ["x-axis: vertically", "y-axis: horizontally"] as const;

export const latentNodes = [
  defineNode({
    key: "LatentAdd",
    displayName: "Latent Add",
    category: "latent/advanced",
    description: "The sum of two latents; the second is resized to the first, its batch repeated or cut.",
    inputs: { samples1: latent(), samples2: latent() },
    outputs: { LATENT: "LATENT" },
    run: ({ samples1, samples2 }) => ({ LATENT: added(samples1, samples2, 1) }),
  }),
  defineNode({
    key: "LatentBlend",
    displayName: "Latent Blend",
    category: "_for_testing",
    description: "Mixes two latents; a factor of 1 keeps only the first.",
    inputs: {
      samples1: latent(),
      samples2: latent(),
      blend_factor: float({ default: 0.5, min: 0, max: 1, step: 0.01 }),
    },
    outputs: { LATENT: "LATENT" },
    run: ({ samples1, samples2, blend_factor }) => {
      const second = fitted(samples2.samples, samples1.samples, "samples2", "bicubic");
      const [one = 0, two = 0] = [samples1.samples.shape[0], second.shape[0]];
      if (one !== two && one !== 1 && two !== 1)
        throw inputError("input.invalid", { input: "samples2" }, `a latent of ${one} items or one`, samples2.samples);
      const batch = one === 1 ? two : one;
      const [a, b] = [cycled(samples1.samples, batch), cycled(second, batch)];
      return { LATENT: { ...samples1, samples: axpy(scale(a, blend_factor), b, 1 - blend_factor) } };
    },
  }),
  defineNode({
    key: "LatentCompositeMasked",
    displayName: "Latent Composite Masked",
    category: "latent",
    description: "Pastes a latent onto another through a mask; offsets are in pixels.",
    inputs: {
      destination: latent(),
      source: latent(),
      x: cellOffset(),
      y: cellOffset(),
      resize_source: boolean({ default: false }),
      mask: mask({ optional: true }),
    },
    outputs: { LATENT: "LATENT" },
    run: ({ destination, source, x, y, resize_source, mask }) => {
      const { shape } = destination.samples;
      if (shape.length > 4 && mask === undefined)
        throw inputError("input.missing", { input: "mask" }, "a mask for a latent of five axes", mask);
      const to = planes(destination.samples);
      const from = sourceOf(to, source.samples, resize_source);
      const [, , height = 0, width = 0] = from.shape;
      const through = mask === undefined ? undefined : sized(mask, height, width);
      const pasted = composite(to, from, Math.floor(x / CELL), Math.floor(y / CELL), through);
      return { LATENT: { ...destination, samples: pasted.reshape(shape) } };
    },
  }),
  defineNode({
    key: "LatentComposite",
    displayName: "Latent Composite",
    category: "latent",
    description: "Pastes a latent onto another, feathered at inner edges; offsets are in pixels.",
    inputs: { samples_to: latent(), samples_from: latent(), x: cellOffset(), y: cellOffset(), feather: cellOffset() },
    outputs: { LATENT: "LATENT" },
    run: ({ samples_to, samples_from, ...pixels }) => {
      const [x, y, feather] = [pixels.x, pixels.y, pixels.feather].map((side) => Math.floor(side / CELL)) as Offsets;
      const [to, whole] = [planes(samples_to.samples), planes(samples_from.samples)];
      refuseOtherSides(to, whole);
      const [, , height = 0, width = 0] = to.shape;
      const [, , rows = 0, columns = 0] = whole.shape;
      const [visibleRows, visibleColumns] = [Math.min(rows, height - y), Math.min(columns, width - x)];
      if (visibleRows <= 0 || visibleColumns <= 0) return { LATENT: { ...samples_to } };
      const from = cropped(whole, -2, { top: 0, left: 0, height: visibleRows, width: visibleColumns });
      const mask = feather === 0 ? undefined : ramps(visibleRows, visibleColumns, [x, y, feather], [height, width]);
      const samples = composite(to, from, x, y, mask).reshape(samples_to.samples.shape);
      return { LATENT: { ...samples_to, samples } };
    },
  }),
  defineNode({
    key: "LatentCrop",
    displayName: "Crop Latent",
    category: "latent/transform",
    description: "A part of a latent, at least 64 pixels wide and high if the latent is; sizes are in pixels.",
    inputs: { samples: latent(), width: cropSide(), height: cropSide(), x: cellOffset(), y: cellOffset() },
    outputs: { LATENT: "LATENT" },
    run: ({ samples: latent, width, height, x, y }, { log }) => {
      const { samples } = latent;
      const [rows = 0, columns = 0] = samples.shape.slice(-2);
      const [[top, high], [left, wide]] = [span(rows, y, height), span(columns, x, width)];
      const clips = { width: clip(width, wide), height: clip(height, high), x: clip(x, left), y: clip(y, top) };
      warnOfClips("latent", clips, log);
      return { LATENT: { ...latent, samples: cropped(samples, -2, { top, left, height: high, width: wide }) } };
    },
  }),
  defineNode({
    key: "LatentFlip",
    displayName: "Flip Latent",
    category: "latent/transform",
    description: "Flips a latent vertically or horizontally.",
    inputs: { samples: latent(), flip_method: choice(FLIPS) },
    outputs: { LATENT: "LATENT" },
    run: ({ samples, flip_method }) => {
      const flipped = flip_method === FLIPS[0] ? upsideDown : mirrored;
      return { LATENT: { ...samples, samples: flipped(samples.samples, -2) } };
    },
  }),
  // decisions: Nodes correct the reference's faults
  defineNode({
    key: "LatentInterpolate",
    displayName: "Latent Interpolate",
    category: "latent/advanced",
    description: "Mixes direction and length of two latents' cells; a ratio of 1 keeps only the first.",
    inputs: { samples1: latent(), samples2: latent(), ratio: float({ default: 1, min: 0, max: 1, step: 0.01 }) },
    outputs: { LATENT: "LATENT" },
    run: ({ samples1, samples2, ratio }) => {
      const { samples } = samples1;
      const second = cycled(fitted(samples2.samples, samples, "samples2"), samples.shape[0]!);
      return { LATENT: { ...samples1, samples: interpolateDirections(samples, second, ratio) } };
    },
  }),
  defineNode({
    key: "LatentMultiply",
    displayName: "Latent Multiply",
    category: "latent/advanced",
    description: "A latent times a number.",
    inputs: { samples: latent(), multiplier: float({ default: 1, min: -10, max: 10, step: 0.01 }) },
    outputs: { LATENT: "LATENT" },
    run: ({ samples, multiplier }) => ({ LATENT: { ...samples, samples: scale(samples.samples, multiplier) } }),
  }),
  defineNode({
    key: "LatentRotate",
    displayName: "Rotate Latent",
    category: "latent/transform",
    description: "Rotates a latent clockwise.",
    inputs: { samples: latent(), rotation: choice(ROTATIONS) },
    outputs: { LATENT: "LATENT" },
    run: ({ samples, rotation }) => ({
      LATENT: { ...samples, samples: turned(samples.samples, -2, ROTATIONS.indexOf(rotation)) },
    }),
  }),
  defineNode({
    key: "LatentSubtract",
    displayName: "Latent Subtract",
    category: "latent/advanced",
    description: "The difference of two latents; the second is resized to the first, its batch repeated or cut.",
    inputs: { samples1: latent(), samples2: latent() },
    outputs: { LATENT: "LATENT" },
    run: ({ samples1, samples2 }) => ({ LATENT: added(samples1, samples2, -1) }),
  }),
] as const;

function sourceOf(to: Tensor, samples: Tensor, resizes: boolean): Tensor {
  const from = planes(samples);
  const [, channels, height = 0, width = 0] = to.shape;
  if (from.shape[1] !== channels && from.shape[1] !== 1) {
    const expected = `a latent of ${channels} channels, as the destination, or one`;
    throw inputError("input.invalid", { input: "source" }, expected, samples);
  }
  return resizes ? resized(from, height, width) : from;
}

function resized(x: Tensor, height: number, width: number): Tensor {
  return x.shape.at(-2) === height && x.shape.at(-1) === width ? x : resizeBilinear(x, height, width);
}

/** Masks [N, height, width]. */
function sized(mask: Tensor, height: number, width: number): Tensor {
  return resized(mask.reshape(maskSides("mask", mask)), height, width);
}

type Offsets = [x: number, y: number, feather: number];

function refuseOtherSides(to: Tensor, from: Tensor): void {
  const [batch, channels] = to.shape;
  const [ownBatch, ownChannels] = from.shape;
  if ((ownBatch === batch || ownBatch === 1) && (ownChannels === channels || ownChannels === 1)) return;
  const sides = [batch, channels].map((side) => (side === 1 ? "1" : `${side} or 1`));
  const expected = `a latent of shape [${sides.join(", ")}, H, W]`;
  throw inputError("input.invalid", { input: "samples_from" }, expected, from);
}

/** Mask of ones that rises over `feather` cells from each edge that lies inside the target. */
function ramps(rows: number, columns: number, [x, y, feather]: Offsets, [height, width]: [number, number]): Tensor {
  const mask = Tensor.full([1, rows, columns], 1);
  const scaleRow = (row: number, k: number) => {
    for (let at = row * columns; at < (row + 1) * columns; at++) mask.data[at]! *= k;
  };
  const scaleColumn = (column: number, k: number) => {
    for (let at = column; at < mask.size; at += columns) mask.data[at]! *= k;
  };
  for (let step = 0; step < feather; step++) {
    const k = Math.fround((1 / feather) * (step + 1));
    const [bottom, right] = [fromEnd(rows, step), fromEnd(columns, step)];
    if (y !== 0 && step < rows) scaleRow(step, k);
    if (y + rows < height && bottom !== undefined) scaleRow(bottom, k);
    if (x !== 0 && step < columns) scaleColumn(step, k);
    if (x + columns < width && right !== undefined) scaleColumn(right, k);
  }
  return mask;
}

/** Index of the step-th element from the end; past the beginning it continues at the end, as in ComfyUI. */
function fromEnd(length: number, step: number): number | undefined {
  if (step < length) return length - 1 - step;
  return step > length && step < 2 * length ? 2 * length - 1 - step : undefined;
}

/** Smallest side of a crop, in cells. */
const LEAST_CELLS = 8;

/** Pixels as received and as used; a part of a cell is dropped, which counts as a bend. */
const clip = (pixels: number, cells: number): readonly [number, number] => [pixels - (pixels % CELL), cells * CELL];

/** First cell and number of cells; in a latent below the smallest side the start counts from its end, as in ComfyUI. */
function span(length: number, offset: number, pixels: number): [from: number, count: number] {
  const start = Math.min(Math.floor(offset / CELL), length - LEAST_CELLS);
  const end = Math.min(length, start + Math.floor(pixels / CELL));
  const from = start < 0 ? Math.max(0, length + start) : start;
  return [from, Math.max(0, end - from)];
}
