import { describe } from "../../../base/errors.js";
import { defineNode } from "../../define.js";
import { lacking, loadHostCheckpoint } from "../../host-files.js";
import { checkpointName } from "./checkpoint-loader-simple.js";

export const unclipCheckpointLoader = defineNode({
  key: "unCLIPCheckpointLoader",
  category: "loaders",
  description: "Loads one of the host's checkpoints that take pictures as prompts.",
  inputs: { ckpt_name: { ...checkpointName(), needs: { ability: "clip-vision" } as const } },
  outputs: [
    { name: "MODEL", type: "MODEL" },
    { name: "CLIP", type: "CLIP" },
    { name: "VAE", type: "VAE" },
    { name: "CLIP_VISION", type: "CLIP_VISION" },
  ],
  run: async ({ ckpt_name }, { host, signal, log }) => {
    const { model, clip, vae, clipVision } = await loadHostCheckpoint({ ckpt_name }, { host, signal, log });
    if (clipVision === undefined) throw lacking(host, `no CLIP vision model in ${describe(ckpt_name)}`);
    return { MODEL: model, CLIP: clip, VAE: vae, CLIP_VISION: clipVision };
  },
});
