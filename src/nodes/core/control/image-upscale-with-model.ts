import { inputError } from "../../../base/errors.js";
import type { UpscaleModel } from "../../../host/types.js";
import { firstChannels } from "../../../tensor/channels.js";
import { cropped, narrowed } from "../../../tensor/parts.js";
import { fourSides } from "../../../tensor/shape.js";
import { elementCount, Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { image, socket } from "../../inputs.js";
import { addTile, regionOf, tilesOf } from "../../tiles.js";

const TILE = 512;
const OVERLAP = 32;
const CHANNELS = 3;

export const imageUpscaleWithModel = defineNode({
  key: "ImageUpscaleWithModel",
  displayName: "Upscale Image (using Model)",
  category: "image/upscaling",
  description: "Enlarges images with a model, in overlapping tiles of 512 pixels; alpha is left out.",
  inputs: { upscale_model: socket<UpscaleModel>("UPSCALE_MODEL"), image: image() },
  outputs: { IMAGE: "IMAGE" },
  run: async ({ upscale_model: model, image }, { signal, progress }) => {
    const pixels = firstChannels(image, CHANNELS);
    const [batch, height, width] = fourSides("Upscale", pixels);
    const { scale } = model;
    const shape = [batch, height * scale, width * scale, CHANNELS];
    elementCount(shape);
    const tiles = tilesOf(height, width, TILE, OVERLAP, scale);
    const out = Tensor.zeros(shape);
    const layout = { planes: 1, height: shape[1]!, width: shape[2]!, values: CHANNELS, scale };
    const size = out.size / Math.max(1, batch);
    for (let item = 0; item < batch; item++) {
      const picture = narrowed(pixels, 0, item, 1);
      for (const [index, tile] of tiles.entries()) {
        signal.throwIfAborted();
        const part = cropped(picture, 1, regionOf(tile));
        const large = requireTile(await model.upscale(part, signal), part, scale);
        addTile(out.data.subarray(item * size, (item + 1) * size), large.data, tile, layout);
        progress(item * tiles.length + index + 1, batch * tiles.length);
      }
    }
    clamp(out.data);
    return { IMAGE: out };
  },
});

function requireTile(tile: unknown, { shape }: Tensor, scale: number): Tensor {
  const expected = [1, shape[1]! * scale, shape[2]! * scale, CHANNELS];
  if (tile instanceof Tensor && tile.hasShape(expected)) return tile;
  throw inputError("value.invalid", { input: "upscale_model" }, `a model that returns [${expected.join(", ")}]`, tile);
}

/** Limits values to 0…1; NaN is 0. */
function clamp(values: Float32Array): void {
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    values[i] = value > 0 ? Math.min(value, 1) : 0;
  }
}
