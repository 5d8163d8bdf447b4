import { joined } from "../../../tensor/parts.js";
import { defineNode } from "../../define.js";
import { latent } from "../../inputs.js";
import { batchIndexOf, fitted } from "../../latents.js";

export const latentBatch = defineNode({
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
});
