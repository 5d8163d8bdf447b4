import { cycled, repeated } from "../../../tensor/parts.js";
import type { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { int, latent } from "../../inputs.js";
import { isSingleMask } from "../../latents.js";

export const repeatLatentBatch = defineNode({
  key: "RepeatLatentBatch",
  displayName: "Repeat Latent Batch",
  category: "latent/batch",
  description: "Repeats a batch of latents, each time with noise of its own.",
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
});

// decision 208
/** One mask is that of all items. Fewer masks than items repeat to the batch first; ComfyUI leaves them too few. */
const repeatedMask = (mask: Tensor, batch: number, amount: number): Tensor =>
  isSingleMask(mask) ? mask : repeated(mask.shape[0]! < batch ? cycled(mask, batch) : mask, amount);

/** Each repetition continues where the one before ends. */
function repeatedIndex(index: readonly number[], amount: number): number[] {
  const lowest = index.reduce((least, at) => Math.min(least, at), Number.POSITIVE_INFINITY);
  const highest = index.reduce((most, at) => Math.max(most, at), Number.NEGATIVE_INFINITY);
  const step = highest - lowest + 1;
  return Array.from({ length: amount }, (_, time) => index.map((at) => at + time * step)).flat();
}
