import { defineNode } from "../../define.js";
import { loadHostCheckpoint } from "../../host-files.js";
import { choice } from "../../inputs.js";

/** Input with the choice of the host's checkpoints. */
export const checkpointName = () => ({
  ...choice(({ host }) => host?.checkpoints() ?? []),
  files: "checkpoints" as const,
});

export const checkpointLoaderSimple = defineNode({
  key: "CheckpointLoaderSimple",
  displayName: "Load Checkpoint",
  category: "loaders",
  description: "Loads a checkpoint of the host: its model, CLIP and VAE.",
  inputs: { ckpt_name: checkpointName() },
  outputs: [
    { name: "MODEL", type: "MODEL" },
    { name: "CLIP", type: "CLIP" },
    { name: "VAE", type: "VAE" },
  ],
  run: async ({ ckpt_name }, { host, signal, log }) => {
    const { model, clip, vae } = await loadHostCheckpoint({ ckpt_name }, { host, signal, log });
    return { MODEL: model, CLIP: clip, VAE: vae };
  },
});
