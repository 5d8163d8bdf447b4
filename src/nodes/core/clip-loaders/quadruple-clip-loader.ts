import { joinedClips } from "../../clips.js";
import { defineNode } from "../../define.js";
import { fileName } from "../../host-files.js";

export const quadrupleClipLoader = defineNode({
  key: "QuadrupleCLIPLoader",
  category: "advanced/loaders",
  description: "Loads four text encoders of the host as one clip, as HiDream has them.",
  inputs: {
    clip_name1: fileName("text_encoders"),
    clip_name2: fileName("text_encoders"),
    clip_name3: fileName("text_encoders"),
    clip_name4: fileName("text_encoders"),
  },
  outputs: { CLIP: "CLIP" },
  run: async (names, { host, signal, log }) => ({
    CLIP: await joinedClips(Object.values(names), { host, signal, log }),
  }),
});
