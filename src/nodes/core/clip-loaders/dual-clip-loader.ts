import { joinedClips } from "../../clips.js";
import { defineNode } from "../../define.js";
import { fileName } from "../../host-files.js";
import { choice } from "../../inputs.js";

export const DUAL_CLIP_FAMILIES = [
  ...["sdxl", "sd3", "flux", "hunyuan_video", "hidream", "hunyuan_image", "hunyuan_video_15", "kandinsky5"],
  ...["kandinsky5_image", "ltxv", "newbie", "ace"],
];

export const dualClipLoader = defineNode({
  key: "DualCLIPLoader",
  category: "advanced/loaders",
  description: "Loads two text encoders of the host as one clip.",
  inputs: {
    clip_name1: fileName("text_encoders"),
    clip_name2: fileName("text_encoders"),
    type: choice(DUAL_CLIP_FAMILIES),
    device: choice(["default", "cpu"], { optional: true, tooltip: "Not used: the host decides where it computes." }),
  },
  outputs: { CLIP: "CLIP" },
  run: async ({ clip_name1, clip_name2, type }, { host, signal, log }) => ({
    CLIP: await joinedClips({ clip_name1, clip_name2 }, { host, signal, log }, { type }),
  }),
});
