import { describe, LatentkitError } from "../../base/errors.js";
import { cycled, joined } from "../../tensor/parts.js";
import { resizeLatent } from "../../tensor/resize.js";
import { LATENT_FORMATS } from "../../tensor/sampling/latent-format.js";
import { Tensor } from "../../tensor/tensor.js";
import type { Conditioning, SamplingRun } from "../types.js";
import type { ReferencePlaces } from "./networks/flux/positions.js";
import { fluxEmbeddings } from "./networks/flux/transformer.js";
import { joinedTokens, patchesOf } from "./networks/patches.js";

// Inputs of a Flux model beside the noisy latent, from the options of a conditioning.

/** Order of a patch's numbers. */
export const FLUX_PATCHES = "cells-of-channels";
/** Guidance of an entry that has none. */
const GUIDANCE = 3.5;
/** Pixels along a side of a latent's cell. */
const CELL = 8;
const PLACES: readonly unknown[] = ["offset", "index", "uxo"] satisfies ReferencePlaces[];

/** References of an entry: latents in the VAE's units, and where they stand. */
export interface References {
  readonly latents: readonly Tensor[];
  readonly places: ReferencePlaces;
}

/** The references of an entry. Fails with value.invalid and tensor.bad-shape for options of other kinds. */
export function referencesOf([, options]: Conditioning[number]): References {
  const { reference_latents: latents = [], reference_latents_method: places = "offset" } = options;
  const { channels } = LATENT_FORMATS.Flux;
  const isLatent = (value: unknown): boolean =>
    value instanceof Tensor && value.shape.length === 4 && value.size > 0 && value.shape[1] === channels;
  if (!Array.isArray(latents) || !latents.every(isLatent)) {
    const received = describe(Array.isArray(latents) ? latents.find((value) => !isLatent(value)) : latents);
    const expected = `reference latents [B, ${channels}, h, w]`;
    throw new LatentkitError("tensor.bad-shape", `conditioning: expected ${expected}, received ${received}.`);
  }
  if (!PLACES.includes(places)) {
    const message = `conditioning: expected reference_latents_method ${PLACES.join(", ")}, received ${describe(places)}.`;
    throw new LatentkitError("value.invalid", message);
  }
  return { latents, places: places as ReferencePlaces };
}

/** Patches of all references [1 or n, L, 64] in the model's units; undefined for none. */
export function referencePatches({ latents }: References): Tensor | undefined {
  if (latents.length === 0) return undefined;
  const items = Math.max(...latents.map(({ shape }) => shape[0]!));
  return joinedTokens(latents.map((latent) => patchesOf(modelUnits(cycled(latent, items)), FLUX_PATCHES)));
}

/** Guidance of an entry, embedded [1, 256], and 1 or 0 for whether it has any. Fails with value.invalid for anything but a number. */
export function guidanceOf([, { guidance = GUIDANCE }]: Conditioning[number]): { guidance: Tensor; guided: Tensor } {
  if (guidance !== null && !(typeof guidance === "number" && Number.isFinite(guidance)))
    throw new LatentkitError("value.invalid", `conditioning: expected a guidance, received ${describe(guidance)}.`);
  return { guidance: fluxEmbeddings([guidance ?? 0]), guided: Tensor.full([1], guidance === null ? 0 : 1) };
}

/** Pooled text of an entry [n, width], zeros where it has none. Fails with value.invalid for another width. */
export function pooledOf([, { pooled_output: pooled }]: Conditioning[number], width: number): Tensor {
  if (pooled === undefined || pooled === null) return Tensor.zeros([1, width]);
  if (pooled instanceof Tensor && pooled.shape.length === 2 && pooled.shape[0]! > 0 && pooled.shape[1] === width)
    return pooled;
  const expected = `pooled_output [n, ${width}], as CLIP-L makes it`;
  throw new LatentkitError("value.invalid", `conditioning: expected ${expected}, received ${describe(pooled)}.`);
}

/**
 * Channels of a picture beside the latent in the model's units, and with `hasMask` 64 of a mask: its pixels in each cell,
 * row by row. They come from the entry's `concat_latent_image` and `concat_mask`. Without a picture there is black, without
 * a mask, the run's too, everything is repainted.
 */
export function pictureChannels(entry: Conditioning[number], run: SamplingRun, hasMask: boolean): Tensor {
  const [batch, channels, rows, columns] = run.latent.shape as [number, number, number, number];
  const [, { concat_latent_image: ownPicture, concat_mask: ownMask }] = entry;
  const picture = optionalTensor("concat_latent_image", ownPicture) ?? Tensor.zeros([1, channels, rows, columns]);
  if (picture.shape.length !== 4 || picture.shape[1] !== channels) {
    const expected = `concat_latent_image with ${channels} channels`;
    throw new LatentkitError("tensor.bad-shape", `conditioning: expected ${expected}, received ${describe(picture)}.`);
  }
  const scaled = cycled(modelUnits(resizedTo(picture, rows, columns)), batch);
  if (!hasMask) return scaled;
  const mask = optionalTensor("concat_mask", ownMask) ?? run.mask;
  if (mask === undefined) return joined([scaled, Tensor.full([batch, CELL * CELL, rows, columns], 1)], 1);
  const [height = 0, width = 0] = mask.shape.slice(-2);
  const planes = mask.reshape([mask.size / (height * width), 1, height, width]);
  const pixels = cycled(resizedTo(planes, CELL * rows, CELL * columns), batch);
  return joined([scaled, cellsOf(pixels, rows, columns)], 1);
}

/** Pixels [B, 1, 8 · rows, 8 · columns] as channels of their cells [B, 64, rows, columns]. */
function cellsOf(pixels: Tensor, rows: number, columns: number): Tensor {
  const [items] = pixels.shape as [number];
  const out = Tensor.unfilled([items, CELL * CELL, rows, columns]);
  const width = CELL * columns;
  let at = 0;
  for (let item = 0; item < items; item++)
    for (let y = 0; y < CELL; y++)
      for (let x = 0; x < CELL; x++)
        for (let row = 0; row < rows; row++)
          for (let column = 0; column < columns; column++)
            out.data[at++] = pixels.data[((item * rows + row) * CELL + y) * width + column * CELL + x]!;
  return out;
}

/** A latent of the VAE in the model's units: zeros, which are a colour too, as all others. */
function modelUnits(latent: Tensor): Tensor {
  const { scaleFactor, shiftFactor } = LATENT_FORMATS.Flux;
  const out = Tensor.unfilled(latent.shape);
  for (let i = 0; i < out.size; i++) out.data[i] = Math.fround(latent.data[i]! - shiftFactor) * scaleFactor;
  return out;
}

const resizedTo = (x: Tensor, height: number, width: number): Tensor =>
  x.shape[2] === height && x.shape[3] === width
    ? x
    : resizeLatent(x, { width, height, method: "bilinear", crop: "center" });

function optionalTensor(name: string, value: unknown): Tensor | undefined {
  if (value === undefined || value === null) return undefined;
  if (value instanceof Tensor && value.size > 0 && value.shape.length >= 3) return value;
  throw new LatentkitError(
    "tensor.bad-shape",
    `conditioning, ${name}: expected a tensor, received ${describe(value)}.`,
  );
}
