import { joinedClips } from "../../clips.js";
import { defineNode } from "../../define.js";
import { fileName } from "../../host-files.js";
import { choice } from "../../inputs.js";
import { DUAL_CLIP_FAMILIES } from "./dual-clip-loader.js";

export const dualClipLoaderGguf = defineNode({
  key: "DualCLIPLoaderGGUF",
  displayName: "DualCLIPLoader (GGUF)",
  category: "advanced/loaders",
  description: "Loads two text encoders of the host as one clip, as DualCLIPLoader does.",
  inputs: {
    clip_name1: fileName("text_encoders"),
    clip_name2: fileName("text_encoders"),
    type: choice(DUAL_CLIP_FAMILIES),
  },
  outputs: { CLIP: "CLIP" },
  run: async ({ clip_name1, clip_name2, type }, { host, signal, log }) => ({
    CLIP: await joinedClips({ clip_name1, clip_name2 }, { host, signal, log }, { type }),
  }),
});
