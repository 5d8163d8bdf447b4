import { defineNode } from "../../define.js";
import { fileName, loadHostFile } from "../../host-files.js";
import { choice } from "../../inputs.js";

export const CLIP_FAMILIES = [
  ...["stable_diffusion", "stable_cascade", "sd3", "stable_audio", "mochi", "ltxv", "pixart", "cosmos", "lumina2"],
  ...["wan", "hidream", "chroma", "ace", "omnigen2", "qwen_image", "hunyuan_image", "flux2", "ovis"],
  ...["longcat_image", "minimax", "krea2", "ideogram4", "cogvideox", "ernie_image"],
];

export const clipLoader = defineNode({
  key: "CLIPLoader",
  displayName: "Load CLIP",
  category: "advanced/loaders",
  description: "Loads a text encoder of the host.",
  inputs: {
    clip_name: fileName("text_encoders"),
    type: choice(CLIP_FAMILIES),
    device: choice(["default", "cpu"], { optional: true, tooltip: "Not used: the host decides where it computes." }),
  },
  outputs: { CLIP: "CLIP" },
  run: async ({ clip_name, type }, { host, signal, log }) => ({
    CLIP: await loadHostFile("text_encoders", { clip_name }, { host, signal, log }, { type }),
  }),
});
