import { describe } from "../../../base/errors.js";
import { defineNode } from "../../define.js";
import { lacking, loadHostCheckpoint } from "../../host-files.js";
import { checkpointName } from "./checkpoint-loader-simple.js";

export const imageOnlyCheckpointLoader = defineNode({
  key: "ImageOnlyCheckpointLoader",
  displayName: "Image Only Checkpoint Loader (img2vid model)",
  category: "loaders/video_models",
  description: "Loads one of the host's checkpoints that take pictures as prompts, without its CLIP.",
  inputs: { ckpt_name: { ...checkpointName(), needs: { ability: "clip-vision" } as const } },
  outputs: [
    { name: "MODEL", type: "MODEL" },
    { name: "CLIP_VISION", type: "CLIP_VISION" },
    { name: "VAE", type: "VAE" },
  ],
  run: async ({ ckpt_name }, { host, signal, log }) => {
    const { model, vae, clipVision } = await loadHostCheckpoint({ ckpt_name }, { host, signal, log });
    if (clipVision === undefined) throw lacking(host, `no CLIP vision model in ${describe(ckpt_name)}`);
    return { MODEL: model, CLIP_VISION: clipVision, VAE: vae };
  },
});
