import { inputError, LatentkitError } from "../../../base/errors.js";
import type { UpscaleModel } from "../../../host/types.js";
import { firstChannels } from "../../../tensor/channels.js";
import { fourSides } from "../../../tensor/shape.js";
import { elementCount, Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { image, socket } from "../../inputs.js";
import { type Span, spansOf } from "./tiles.js";

const TILE = 512;
const OVERLAP = 32;
const CHANNELS = 3;

export const imageUpscaleWithModel = defineNode({
  key: "ImageUpscaleWithModel",
  displayName: "Upscale Image (using Model)",
  category: "image/upscaling",
  description: "Enlarges the colours of images with a model, in overlapping tiles of 512 pixels.",
  inputs: { upscale_model: socket<UpscaleModel>("UPSCALE_MODEL"), image: image() },
  outputs: { IMAGE: "IMAGE" },
  run: async ({ upscale_model: model, image }, { signal, progress }) => {
    const pixels = firstChannels(image, CHANNELS);
    const [batch, height, width] = fourSides("Upscale", pixels);
    const { scale } = model;
    const shape = [batch, height * scale, width * scale, CHANNELS];
    elementCount(shape);
    const rows = spansOf(height, TILE, OVERLAP, scale);
    const columns = spansOf(width, TILE, OVERLAP, scale);
    const out = Tensor.zeros(shape);
    const total = batch * rows.length * columns.length;
    let done = 0;
    for (let item = 0; item < batch; item++)
      for (const down of rows)
        for (const across of columns) {
          if (signal.aborted) throw new LatentkitError("run.interrupted", "The run was interrupted.");
          const large = await model.upscale(cut(pixels, item, down, across), signal);
          addTile(out, requireTile(large, down, across, scale), item, down, across, scale);
          progress(++done, total);
        }
    clamp(out.data);
    return { IMAGE: out };
  },
});

/** A part of one image, [1, h, w, 3]. */
function cut(image: Tensor, item: number, down: Span, across: Span): Tensor {
  const [, height, width] = image.shape as [number, number, number];
  const out = Tensor.unfilled([1, down.count, across.count, CHANNELS]);
  const line = across.count * CHANNELS;
  for (let row = 0; row < down.count; row++) {
    const from = ((item * height + down.from + row) * width + across.from) * CHANNELS;
    out.data.set(image.data.subarray(from, from + line), row * line);
  }
  return out;
}

function requireTile(tile: unknown, down: Span, across: Span, scale: number): Tensor {
  const shape = [1, down.count * scale, across.count * scale, CHANNELS];
  if (tile instanceof Tensor && tile.hasShape(shape)) return tile;
  throw inputError("value.invalid", { input: "upscale_model" }, `a model that returns [${shape.join(", ")}]`, tile);
}

/** Adds a tile times its weights to an image; values that no other tile has are copied. */
function addTile(out: Tensor, tile: Tensor, item: number, down: Span, across: Span, scale: number): void {
  const [, height, width] = out.shape as [number, number, number];
  const [from, into] = [tile.data, out.data];
  const columns = across.weights.length;
  const first = across.weights.indexOf(1);
  const last = across.weights.lastIndexOf(1) + 1;
  for (const [row, weight] of down.weights.entries()) {
    const at = row * columns * CHANNELS;
    const to = ((item * height + down.from * scale + row) * width + across.from * scale) * CHANNELS;
    const add = (start: number, end: number): void => {
      for (let i = start * CHANNELS; i < end * CHANNELS; i++) {
        into[to + i]! += from[at + i]! * weight * across.weights[Math.floor(i / CHANNELS)]!;
      }
    };
    if (weight !== 1 || first < 0) {
      add(0, columns);
      continue;
    }
    into.set(from.subarray(at + first * CHANNELS, at + last * CHANNELS), to + first * CHANNELS);
    add(0, first);
    add(last, columns);
  }
}

/** Limits values to 0…1; NaN is 0. */
function clamp(values: Float32Array): void {
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    values[i] = value > 0 ? Math.min(value, 1) : 0;
  }
}
