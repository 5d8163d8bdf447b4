import { inputError } from "../../../base/errors.js";
import { cycled, narrowed } from "../../../tensor/parts.js";
import type { Tensor } from "../../../tensor/tensor.js";
import { warnOfClips } from "../../bends.js";
import { defineNode } from "../../define.js";
import { int, latent } from "../../inputs.js";
import { batchIndexOf, isSingleMask } from "../../latents.js";

export const latentFromBatch = defineNode({
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
});

/** Masks of these items; one mask is that of all. */
const maskOf = (mask: Tensor, batch: number, from: number, count: number): Tensor =>
  isSingleMask(mask) ? mask : narrowed(mask.shape[0]! < batch ? cycled(mask, batch) : mask, 0, from, count);
