import { defineNode } from "../../define.js";
import { choice, latent } from "../../inputs.js";
import { batchIndexOf } from "../../latents.js";

export const latentBatchSeedBehavior = defineNode({
  key: "LatentBatchSeedBehavior",
  displayName: "Latent Batch Seed Behavior",
  category: "latent/advanced",
  description: "Gives each item of a batch its own noise, or all of them that of the first.",
  inputs: { samples: latent(), seed_behavior: choice(["random", "fixed"], { default: "fixed" }) },
  outputs: { LATENT: "LATENT" },
  run: ({ samples: latent, seed_behavior }) => {
    const { batch_index, ...rest } = latent;
    if (seed_behavior === "random") return { LATENT: rest };
    const [first = 0] = batchIndexOf(latent);
    return { LATENT: { ...rest, batch_index: new Array<number>(latent.samples.shape[0]!).fill(first) } };
  },
});
