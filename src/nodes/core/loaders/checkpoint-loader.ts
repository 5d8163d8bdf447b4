import { defineNode } from "../../define.js";
import { lacking, loadHostCheckpoint } from "../../host-files.js";
import { choice } from "../../inputs.js";
import { checkpointName } from "./checkpoint-loader-simple.js";

/** Configurations whose clip ends one layer earlier. */
const SKIPS_LAYER = ["anything_v3.yaml", "v1-inference_clip_skip_2.yaml", "v1-inference_clip_skip_2_fp16.yaml"];

export const checkpointLoader = defineNode({
  key: "CheckpointLoader",
  displayName: "Load Checkpoint With Config (DEPRECATED)",
  category: "advanced/loaders",
  description: "Loads a checkpoint of the host; only clip skip is taken from the name of the configuration.",
  deprecated: true,
  inputs: {
    config_name: choice(() => undefined, {
      tooltip: "Any name; only three with clip skip, such as v1-inference_clip_skip_2.yaml, have an effect.",
    }),
    ckpt_name: checkpointName(),
  },
  outputs: [
    { name: "MODEL", type: "MODEL" },
    { name: "CLIP", type: "CLIP" },
    { name: "VAE", type: "VAE" },
  ],
  run: async ({ config_name, ckpt_name }, { host, signal, log }) => {
    const { model, clip, vae } = await loadHostCheckpoint({ ckpt_name }, { host, signal, log });
    if (!SKIPS_LAYER.includes(config_name)) return { MODEL: model, CLIP: clip, VAE: vae };
    if (clip.atLayer === undefined) throw lacking(host, `no earlier layers of a clip, which ${config_name} asks for`);
    return { MODEL: model, CLIP: clip.atLayer(-2), VAE: vae };
  },
});
