import { inputError } from "../../base/errors.js";
import type { Latent } from "../../host/types.js";
import { resizeBilinear } from "../../tensor/ops.js";
import { cycled, joined, narrowed, repeated } from "../../tensor/parts.js";
import { maskSides } from "../../tensor/shape.js";
import { Tensor } from "../../tensor/tensor.js";
import { warnOfClips } from "../bends.js";
import { defineNode } from "../define.js";
import { choice, image, int, latent } from "../inputs.js";
import { batchIndexOf, CELL, fitted, isSingleMask } from "../latents.js";

export const latentBatchNodes = [
  defineNode({
    key: "LatentBatch",
    displayName: "Latent Batch",
    category: "latent/batch",
    description: "Two latents as one batch; the second is resized to the first.",
    inputs: { samples1: latent(), samples2: latent() },
    outputs: { LATENT: "LATENT" },
    run: ({ samples1, samples2 }) => {
      const second = fitted(samples2.samples, samples1.samples, "samples2");
      const batch_index = [...batchIndexOf(samples1), ...batchIndexOf(samples2)];
      return { LATENT: { ...samples1, samples: joined([samples1.samples, second], 0), batch_index } };
    },
  }),
  defineNode({
    key: "LatentBatchSeedBehavior",
    displayName: "Latent Batch Seed Behavior",
    category: "latent/advanced",
    description: "Gives each item of a batch its own noise, or all items the noise of the first.",
    inputs: { samples: latent(), seed_behavior: choice(["random", "fixed"], { default: "fixed" }) },
    outputs: { LATENT: "LATENT" },
    run: ({ samples: latent, seed_behavior }) => {
      const { batch_index, ...rest } = latent;
      if (seed_behavior === "random") return { LATENT: rest };
      const [first = 0] = batchIndexOf(latent);
      return { LATENT: { ...rest, batch_index: new Array<number>(latent.samples.shape[0]!).fill(first) } };
    },
  }),
  defineNode({
    key: "LatentConcat",
    displayName: "Latent Concat",
    category: "latent/advanced",
    description: "Two latents side by side along one axis; with a minus the second comes first.",
    inputs: { samples1: latent(), samples2: latent(), dim: choice(["x", "-x", "y", "-y", "t", "-t"]) },
    outputs: { LATENT: "LATENT" },
    run: ({ samples1, samples2, dim }) => {
      const axis = AXES[dim.replace("-", "")]!;
      const first = samples1.samples;
      refuseOtherAxes(first, samples2.samples, first.shape.length + axis);
      const second = cycled(samples2.samples, first.shape[0]!);
      const samples = joined(dim.startsWith("-") ? [second, first] : [first, second], axis);
      return { LATENT: { ...samples1, samples } };
    },
  }),
  defineNode({
    key: "LatentCut",
    displayName: "Latent Cut",
    category: "latent/advanced",
    description: "A part of a latent along one axis, in cells; an index below 0 counts from the end.",
    inputs: {
      samples: latent(),
      dim: choice(["x", "y", "t"]),
      index: int({ default: 0, min: -16384, max: 16384, step: 1 }),
      amount: int({ default: 1, min: 1, max: 16384, step: 1 }),
    },
    outputs: { LATENT: "LATENT" },
    run: ({ samples: latent, dim, index, amount }, { log }) => {
      const { samples } = latent;
      const axis = AXES[dim]!;
      const length = samples.shape.at(axis) ?? 0;
      const from = index >= 0 ? Math.max(0, Math.min(index, length - 1)) : Math.max(0, length + index);
      const most = index >= 0 ? length - from : Math.min(-index, length);
      const count = Math.min(most, amount);
      const start = index >= 0 ? from : Math.max(index, -length);
      warnOfClips("latent", { index: [index, start], amount: [amount, count] }, log);
      return { LATENT: { ...latent, samples: narrowed(samples, axis, from, count) } };
    },
  }),
  defineNode({
    key: "LatentFromBatch",
    displayName: "Latent From Batch",
    category: "latent/batch",
    description: "A range of items of a latent batch, with their noise and masks.",
    inputs: {
      samples: latent(),
      batch_index: int({ default: 0, min: 0, max: 63 }),
      length: int({ default: 1, min: 1, max: 64 }),
    },
    outputs: { LATENT: "LATENT" },
    run: ({ samples: latent, batch_index, length }, { log }) => {
      const batch = latent.samples.shape[0]!;
      if (batch === 0) throw inputError("input.invalid", { input: "samples" }, "a latent with items", latent.samples);
      const from = Math.min(batch - 1, batch_index);
      const count = Math.min(batch - from, length);
      warnOfClips("batch", { batch_index: [batch_index, from], length: [length, count] }, log);
      const part = {
        ...latent,
        samples: narrowed(latent.samples, 0, from, count),
        batch_index: batchIndexOf(latent).slice(from, from + count),
      };
      const { noise_mask: mask } = latent;
      return { LATENT: mask === undefined ? part : { ...part, noise_mask: maskOf(mask, batch, from, count) } };
    },
  }),
  defineNode({
    key: "RebatchImages",
    displayName: "Rebatch Images",
    category: "image/batch",
    description: "Regroups images into batches of one size; the last may be smaller.",
    inputs: { images: image(), batch_size: int({ default: 1, min: 1, max: 4096 }) },
    outputs: [{ name: "IMAGE", type: "IMAGE", list: true }],
    inputIsList: true,
    run: ({ images, batch_size }) => {
      const [size = 1] = batch_size as number[];
      const single = (images as Tensor[]).flatMap((batch) =>
        Array.from({ length: batch.shape[0]! }, (_, index) => narrowed(batch, 0, index, 1)),
      );
      const count = Math.ceil(single.length / size);
      return {
        IMAGE: Array.from({ length: count }, (_, at) => batchOfImages(single.slice(at * size, (at + 1) * size))),
      };
    },
  }),
  defineNode({
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
      return { LATENT: batches.map(batchOfLatents) };
    },
  }),
  defineNode({
    key: "RepeatLatentBatch",
    displayName: "Repeat Latent Batch",
    category: "latent/batch",
    description: "Repeats a batch of latents, each time with different noise.",
    inputs: { samples: latent(), amount: int({ default: 1, min: 1, max: 64 }) },
    outputs: { LATENT: "LATENT" },
    run: ({ samples: latent, amount }) => {
      const { samples, noise_mask, batch_index } = latent;
      return {
        LATENT: {
          ...latent,
          samples: repeated(samples, amount),
          ...(noise_mask !== undefined && { noise_mask: repeatedMask(noise_mask, samples.shape[0]!, amount) }),
          ...(batch_index !== undefined && { batch_index: repeatedIndex(batch_index, amount) }),
        },
      };
    },
  }),
] as const;

function refuseOtherAxes(first: Tensor, second: Tensor, axis: number): void {
  const fits = (side: number, at: number) => at === 0 || at === axis || side === first.shape[at];
  if (axis > 0 && second.shape.length === first.shape.length && second.shape.every(fits)) return;
  const expected = `a latent that differs from [${first.shape.join(", ")}] only in its batch and axis ${axis}`;
  throw inputError("input.invalid", { input: "samples2" }, expected, second);
}

/** Axes by ComfyUI's names: time is the one before height. */
const AXES: Readonly<Record<string, number>> = { x: -1, y: -2, t: -3 };

/** Masks of these items; a single mask serves all. */
const maskOf = (mask: Tensor, batch: number, from: number, count: number): Tensor =>
  isSingleMask(mask) ? mask : narrowed(mask.shape[0]! < batch ? cycled(mask, batch) : mask, 0, from, count);

function batchOfImages(images: readonly Tensor[]): Tensor {
  const [first] = images;
  const misfit = images.find(({ shape }) => !first!.hasShape(shape));
  if (misfit === undefined) return joined(images, 0);
  const expected = `images of shape [${first!.shape.join(", ")}] in one batch`;
  throw inputError("tensor.bad-shape", { input: "images" }, expected, misfit);
}

/** One latent [1, …] with its mask [1, 1, H, W], if it has one. */
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
    const masks = noise_mask === undefined ? undefined : batchMasks(noise_mask, samples);
    for (let at = 0; at < batch; at++) {
      const mask = masks === undefined ? undefined : narrowed(masks, 0, at, 1);
      items.push({ samples: narrowed(samples, 0, at, 1), mask, index: batch_index?.[at] ?? before + at });
    }
  }
  return items;
}

/** Masks [B, 1, 8 h, 8 w] of latents of h x w cells. */
function batchMasks(mask: Tensor, { shape }: Tensor): Tensor {
  const [height, width] = [shape.at(-2)! * CELL, shape.at(-1)! * CELL];
  const [count, ownHeight, ownWidth] = maskSides("noise_mask", mask);
  const fits = ownHeight === height && ownWidth === width;
  const single = mask.reshape([count, 1, ownHeight, ownWidth]);
  return cycled(fits ? single : resizeBilinear(single, height, width), shape[0]!);
}

/** Items as one batch; a mask that is 1 everywhere is left out. */
function batchOfLatents(items: readonly Item[]): Latent {
  const samples = joined(
    items.map(({ samples }) => samples),
    0,
  );
  const batch = { samples, batch_index: items.map(({ index }) => index) };
  if (items.every(({ mask }) => mask === undefined || mask.data.every((value) => value === 1))) return batch;
  const [height, width] = [samples.shape.at(-2)! * CELL, samples.shape.at(-1)! * CELL];
  const open = Tensor.full([1, 1, height, width], 1);
  const masks = items.map(({ mask }) => mask ?? open);
  return { ...batch, noise_mask: joined(masks, 0) };
}

// decisions: Nodes correct the reference's faults
/** A single mask serves all items. Fewer masks than items repeat to the batch first; ComfyUI leaves them too few. */
const repeatedMask = (mask: Tensor, batch: number, amount: number): Tensor =>
  isSingleMask(mask) ? mask : repeated(mask.shape[0]! < batch ? cycled(mask, batch) : mask, amount);

/** Each repetition continues where the one before ends. */
function repeatedIndex(index: readonly number[], amount: number): number[] {
  const lowest = index.reduce((least, at) => Math.min(least, at), Number.POSITIVE_INFINITY);
  const highest = index.reduce((most, at) => Math.max(most, at), Number.NEGATIVE_INFINITY);
  const step = highest - lowest + 1;
  return Array.from({ length: amount }, (_, time) => index.map((at) => at + time * step)).flat();
}
