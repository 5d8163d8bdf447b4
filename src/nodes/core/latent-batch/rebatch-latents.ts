import type { Latent } from "../../../host/types.js";
import { resizeBilinear } from "../../../tensor/ops.js";
import { cycled, joined, narrowed } from "../../../tensor/parts.js";
import { maskSides } from "../../../tensor/shape.js";
import { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { int, latent } from "../../inputs.js";

export const rebatchLatents = defineNode({
  key: "RebatchLatents",
  displayName: "Rebatch Latents",
  category: "latent/batch",
  description: "Regroups latents into batches of one size; a latent of another size begins a new batch.",
  inputs: { latents: latent(), batch_size: int({ default: 1, min: 1, max: 4096 }) },
  outputs: [{ name: "LATENT", type: "LATENT", list: true }],
  inputIsList: true,
  run: ({ latents, batch_size }) => {
    const [size = 1] = batch_size as number[];
    const batches: Item[][] = [];
    for (const item of itemsOf(latents as Latent[])) {
      const last = batches.at(-1);
      const first = last?.[0]?.samples;
      if (last !== undefined && last.length < size && first?.hasShape(item.samples)) last.push(item);
      else batches.push([item]);
    }
    return { LATENT: batches.map(batchOf) };
  },
});

/** One latent [1, …] with its mask [1, 1, H, W], where it has one. */
interface Item {
  readonly samples: Tensor;
  readonly mask: Tensor | undefined;
  readonly index: number;
}

/** Items of all batches; those of a batch without `batch_index` count on from the batches before. */
function itemsOf(latents: readonly Latent[]): Item[] {
  const items: Item[] = [];
  for (const { samples, noise_mask, batch_index } of latents) {
    const [batch = 0] = samples.shape;
    const before = items.length;
    const masks = noise_mask === undefined ? undefined : masksOf(noise_mask, samples);
    for (let at = 0; at < batch; at++) {
      const mask = masks === undefined ? undefined : narrowed(masks, 0, at, 1);
      items.push({ samples: narrowed(samples, 0, at, 1), mask, index: batch_index?.[at] ?? before + at });
    }
  }
  return items;
}

/** Masks [B, 1, 8 h, 8 w] of latents of h x w cells. */
function masksOf(mask: Tensor, { shape }: Tensor): Tensor {
  const [height, width] = [shape.at(-2)! * 8, shape.at(-1)! * 8];
  const [count, ownHeight, ownWidth] = maskSides("noise_mask", mask);
  const fits = ownHeight === height && ownWidth === width;
  const single = mask.reshape([count, 1, ownHeight, ownWidth]);
  return cycled(fits ? single : resizeBilinear(single, height, width), shape[0]!);
}

/** Items as one batch; a mask that is 1 everywhere is left out. */
function batchOf(items: readonly Item[]): Latent {
  const samples = joined(
    items.map(({ samples }) => samples),
    0,
  );
  const batch = { samples, batch_index: items.map(({ index }) => index) };
  if (items.every(({ mask }) => mask === undefined || mask.data.every((value) => value === 1))) return batch;
  const [height, width] = [samples.shape.at(-2)! * 8, samples.shape.at(-1)! * 8];
  const open = Tensor.full([1, 1, height, width], 1);
  const masks = items.map(({ mask }) => mask ?? open);
  return { ...batch, noise_mask: joined(masks, 0) };
}
