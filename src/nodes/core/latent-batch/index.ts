import { latentBatch } from "./latent-batch.js";
import { latentBatchSeedBehavior } from "./latent-batch-seed-behavior.js";
import { latentConcat } from "./latent-concat.js";
import { latentCut } from "./latent-cut.js";
import { latentFromBatch } from "./latent-from-batch.js";
import { rebatchImages } from "./rebatch-images.js";
import { rebatchLatents } from "./rebatch-latents.js";
import { repeatLatentBatch } from "./repeat-latent-batch.js";

export const latentBatchNodes = [
  latentBatch,
  latentBatchSeedBehavior,
  latentConcat,
  latentCut,
  latentFromBatch,
  rebatchImages,
  rebatchLatents,
  repeatLatentBatch,
] as const;
