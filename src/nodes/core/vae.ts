import { inputError } from "../../base/errors.js";
import type { Vae } from "../../host/types.js";
import { firstChannels } from "../../tensor/channels.js";
import { resizeBilinear } from "../../tensor/ops.js";
import { cropped } from "../../tensor/parts.js";
import { roundHalfEven } from "../../tensor/rounding.js";
import { fourSides, maskSides } from "../../tensor/shape.js";
import { Tensor } from "../../tensor/tensor.js";
import { defineNode } from "../define.js";
import { boolean, conditioning, image, int, latent, mask, vae } from "../inputs.js";
import { CELL, coloursOf, inCells, warnOfCut, wholeCells } from "../latents.js";
import { addTile, regionOf, type Tile, tilesOf } from "../tiles.js";
import { withOptions } from "./conditioning.js";

/** Inputs of both tiled nodes; the temporal ones are for video VAEs and have no effect here. */
const tileInputs = (step: number) => ({
  tile_size: inCells(int({ default: 512, min: 64, max: 4096, step })),
  overlap: inCells(int({ default: 64, min: 0, max: 4096, step: 32 })),
  temporal_size: int({ default: 64, min: 8, max: 4096, step: 4, tooltip: "No effect: for video VAEs." }),
  temporal_overlap: int({ default: 8, min: 4, max: 4096, step: 4, tooltip: "No effect: for video VAEs." }),
});

export const vaeNodes = [
  defineNode({
    key: "InpaintModelConditioning",
    displayName: "Inpaint Model Conditioning",
    category: "conditioning/inpaint",
    description: "Encodes images for an inpainting model, which sees the mask and its surroundings.",
    inputs: {
      positive: conditioning(),
      negative: conditioning(),
      vae: vae(),
      pixels: image(),
      mask: mask(),
      noise_mask: boolean({ default: true, tooltip: "Limits sampling to the mask as well." }),
    },
    outputs: [
      { name: "positive", type: "CONDITIONING" },
      { name: "negative", type: "CONDITIONING" },
      { name: "latent", type: "LATENT" },
    ],
    run: async ({ positive, negative, vae, pixels, mask: received, noise_mask }, { log }) => {
      const { hidden, mask, pixels: whole } = inpaintImage(pixels, received, vae);
      warnOfCut(pixels, "pixels", vae, log);
      const options = { concat_latent_image: await vae.encode(hidden, log), concat_mask: mask };
      const samples = await vae.encode(whole, log);
      return {
        positive: withOptions(positive, options),
        negative: withOptions(negative, options),
        latent: noise_mask ? { samples, noise_mask: mask } : { samples },
      };
    },
  }),
  defineNode({
    key: "InstructPixToPixConditioning",
    category: "conditioning/instructpix2pix",
    description: "Encodes an image for InstructPix2Pix models, which see it at every step; other models ignore it.",
    inputs: { positive: conditioning(), negative: conditioning(), vae: vae(), pixels: image() },
    outputs: [
      { name: "positive", type: "CONDITIONING" },
      { name: "negative", type: "CONDITIONING" },
      { name: "latent", type: "LATENT" },
    ],
    run: async ({ positive, negative, vae, pixels }, { log }) => {
      const concat_latent_image = await vae.encode(wholeCells(coloursOf(pixels, "pixels", vae), 1, vae), log);
      warnOfCut(pixels, "pixels", vae, log);
      return {
        positive: withOptions(positive, { concat_latent_image }),
        negative: withOptions(negative, { concat_latent_image }),
        latent: { samples: Tensor.zeros(concat_latent_image.shape) },
      };
    },
  }),
  defineNode({
    key: "SetLatentNoiseMask",
    displayName: "Set Latent Noise Mask",
    category: "latent/inpaint",
    description: "Limits sampling to a mask; where it is 0 the latent stays unchanged.",
    inputs: { samples: latent(), mask: mask() },
    outputs: { LATENT: "LATENT" },
    run: ({ samples, mask }) => {
      const [count, height, width] = maskSides("mask", mask);
      return { LATENT: { ...samples, noise_mask: mask.reshape([count, 1, height, width]) } };
    },
  }),
  defineNode({
    key: "VAEDecode",
    displayName: "VAE Decode",
    category: "latent",
    description: "Decodes latents to images.",
    inputs: { samples: latent(), vae: vae() },
    outputs: { IMAGE: "IMAGE" },
    run: async ({ samples, vae }) => ({ IMAGE: await vae.decode(samples.samples) }),
  }),
  defineNode({
    key: "VAEDecodeTiled",
    displayName: "VAE Decode (Tiled)",
    category: "_for_testing",
    description: "Decodes latents in overlapping tiles, which need less memory; sizes are in pixels.",
    inputs: { samples: latent(), vae: vae(), ...tileInputs(32) },
    outputs: { IMAGE: "IMAGE" },
    run: async ({ samples: { samples }, vae, ...sizes }, { signal, progress, log }) => {
      const { cell = CELL } = vae;
      const [batch, , rows, columns] = fourSides("VAE decode", samples);
      const tiles = cellTiles([rows, columns], sizes, { cell, scale: cell }, log);
      if (tiles.length === 1) return { IMAGE: await vae.decode(samples) };
      const [height, width] = [rows * cell, columns * cell];
      const image = Tensor.zeros([batch, height, width, 3]);
      for (const [index, tile] of tiles.entries()) {
        signal.throwIfAborted();
        const { down, across } = tile;
        const part = cropped(samples, -2, regionOf(tile));
        const decoded = requireTile(await vae.decode(part), [batch, down.count * cell, across.count * cell, 3]);
        addTile(image.data, decoded.data, tile, { planes: batch, height, width, values: 3, scale: cell });
        progress(index + 1, tiles.length);
      }
      return { IMAGE: image };
    },
  }),
  defineNode({
    key: "VAEEncode",
    displayName: "VAE Encode",
    category: "latent",
    description: "Encodes the colours of images to latents; alpha is left out.",
    inputs: { pixels: image(), vae: vae() },
    outputs: { LATENT: "LATENT" },
    run: async ({ pixels, vae }, { log }) => {
      const samples = await vae.encode(firstChannels(pixels, 3), log);
      warnOfCut(pixels, "pixels", vae, log);
      return { LATENT: { samples } };
    },
  }),
  defineNode({
    key: "VAEEncodeForInpaint",
    displayName: "VAE Encode (for Inpainting)",
    category: "latent/inpaint",
    description: "Encodes images with the masked area greyed out; the noise mask covers it and a margin.",
    inputs: { pixels: image(), vae: vae(), mask: mask(), grow_mask_by: int({ default: 6, min: 0, max: 64, step: 1 }) },
    outputs: { LATENT: "LATENT" },
    run: async ({ pixels, vae, mask, grow_mask_by }, { log }) => {
      const image = inpaintImage(pixels, mask, vae);
      warnOfCut(pixels, "pixels", vae, log);
      const samples = await vae.encode(image.hidden, log);
      return { LATENT: { samples, noise_mask: grown(rounded(image.mask), grow_mask_by) } };
    },
  }),
  defineNode({
    key: "VAEEncodeTiled",
    displayName: "VAE Encode (Tiled)",
    category: "_for_testing",
    description: "Encodes images in overlapping tiles, which need less memory; sizes are in pixels.",
    inputs: { pixels: image(), vae: vae(), ...tileInputs(64) },
    outputs: { LATENT: "LATENT" },
    run: async ({ pixels, vae, ...sizes }, { signal, progress, log }) => {
      const whole = wholeCells(coloursOf(pixels, "pixels", vae), 1, vae);
      warnOfCut(pixels, "pixels", vae, log);
      const [batch = 0, height = 0, width = 0] = whole.shape;
      const { cell = CELL } = vae;
      const [rows, columns] = [height / cell, width / cell];
      const tiles = cellTiles([rows, columns], sizes, { cell, scale: 1 }, log);
      if (tiles.length === 1) return { LATENT: { samples: await vae.encode(whole, log) } };
      let samples: Tensor | undefined;
      for (const [index, tile] of tiles.entries()) {
        signal.throwIfAborted();
        const { down, across } = tile;
        const encoded = await vae.encode(cropped(whole, 1, regionOf(tile, cell)), log);
        const channels = samples?.shape[1] ?? encoded.shape[1] ?? 0;
        requireTile(encoded, [batch, channels, down.count, across.count]);
        samples ??= Tensor.zeros([batch, channels, rows, columns]);
        const layout = { planes: batch * channels, height: rows, width: columns, values: 1, scale: 1 };
        addTile(samples.data, encoded.data, tile, layout);
        progress(index + 1, tiles.length);
      }
      return { LATENT: { samples: samples! } };
    },
  }),
] as const;

/** An image for inpainting, cut to whole cells of the vae. */
interface InpaintImage {
  /** [B, H, W, 3] */
  readonly pixels: Tensor;
  /** The pixels, grey where the rounded mask is 1. */
  readonly hidden: Tensor;
  /** [N, 1, H, W], N being 1 or B; not rounded. */
  readonly mask: Tensor;
}

/** Resizes the mask to the image, cuts both, and greys out the area to repaint. */
function inpaintImage(image: Tensor, mask: Tensor, vae: Vae): InpaintImage {
  const colours = coloursOf(image, "pixels", vae);
  const [batch = 0, height = 0, width = 0] = colours.shape;
  const [count, ownHeight, ownWidth] = maskSides("mask", mask);
  if (count !== 1 && count !== batch)
    throw inputError(
      "input.invalid",
      { input: "mask" },
      batch === 1 ? "one mask" : `one mask, or ${batch}, one for each image`,
      mask,
    );
  const single = mask.reshape([count, 1, ownHeight, ownWidth]);
  const fits = ownHeight === height && ownWidth === width;
  const sized = wholeCells(fits ? single : resizeBilinear(single, height, width), -2, vae);
  const pixels = wholeCells(colours, 1, vae);
  return { pixels, hidden: greyed(pixels, sized), mask: sized };
}

/** (x - 0.5) * (1 - mask) + 0.5 with the rounded mask, in the float32 steps of ComfyUI. */
function greyed(pixels: Tensor, mask: Tensor): Tensor {
  const out = Tensor.unfilled(pixels.shape);
  const [from, through, into] = [pixels.data, mask.data, out.data];
  for (let at = 0, pixel = 0; at < into.length; pixel++) {
    if (pixel === through.length) pixel = 0;
    const visible = 1 - roundHalfEven(through[pixel]!);
    for (let colour = 0; colour < 3; colour++, at++)
      into[at] = Math.fround(Math.fround(from[at]! - 0.5) * visible) + 0.5;
  }
  return out;
}

/** Tiles of a latent of rows x columns cells; sizes in pixels, an overlap is a quarter of the tile at most. */
function cellTiles(
  [rows, columns]: readonly [number, number],
  { tile_size, overlap }: { tile_size: number; overlap: number },
  { cell, scale }: { readonly cell: number; readonly scale: number },
  log: (message: string) => void,
): Tile[] {
  const shared = Math.min(overlap, Math.floor(tile_size / 4));
  if (shared !== overlap) log(`input "overlap": ${overlap} becomes ${shared}, a quarter of tile_size.`);
  return tilesOf(rows, columns, Math.floor(tile_size / cell), Math.floor(shared / cell), scale);
}

/** Refuses a tile of another shape than a vae must return. */
function requireTile(tile: Tensor, shape: readonly number[]): Tensor {
  if (tile.hasShape(shape)) return tile;
  throw inputError("value.invalid", { input: "vae" }, `a vae that returns [${shape.join(", ")}] for a tile`, tile);
}

function rounded(mask: Tensor): Tensor {
  const out = Tensor.unfilled(mask.shape);
  const [from, into] = [mask.data, out.data];
  for (let at = 0; at < into.length; at++) into[at] = roundHalfEven(from[at]!);
  return out;
}

/** Larger values act as this one, so that sums are exact. */
const LIMIT = 2 ** 31;

/** Sums of the `side` x `side` values around each, clamped to 0 … 1; NaN counts as 0. */
function grown(mask: Tensor, side: number): Tensor {
  if (side === 0) return mask;
  const [, , height = 0, width = 0] = mask.shape;
  const values = Float64Array.from(mask.data);
  for (let at = 0; at < values.length; at++) values[at] = Math.min(LIMIT, Math.max(-LIMIT, values[at]! || 0));
  const sums = windowSums(windowSums(values, width, 1, side), height, width, side);
  const out = Tensor.unfilled(mask.shape);
  const into = out.data;
  for (let at = 0; at < into.length; at++) into[at] = Math.min(1, Math.max(0, sums[at]!));
  return out;
}

/** Sums of `side` blocks of `inner` values around each of `length`; an even window has one more before than after. */
function windowSums(values: Float64Array, length: number, inner: number, side: number): Float64Array {
  const out = new Float64Array(values.length);
  const before = Math.ceil((side - 1) / 2);
  const sums = new Float64Array(inner);
  for (let start = 0; start < values.length; start += length * inner) {
    sums.fill(0);
    for (let at = before + 1 - side; at < length; at++) {
      const [enters, leaves] = [at - before + side - 1, at - before - 1];
      for (let i = 0; i < inner; i++) {
        if (enters < length) sums[i]! += values[start + enters * inner + i]!;
        if (leaves >= 0) sums[i]! -= values[start + leaves * inner + i]!;
        if (at >= 0) out[start + at * inner + i] = sums[i]!;
      }
    }
  }
  return out;
}
