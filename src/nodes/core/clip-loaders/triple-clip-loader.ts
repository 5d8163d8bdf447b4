import { joinedClips } from "../../clips.js";
import { defineNode } from "../../define.js";
import { fileName } from "../../host-files.js";

export const tripleClipLoader = defineNode({
  key: "TripleCLIPLoader",
  category: "advanced/loaders",
  description: "Loads three text encoders of the host as one clip, as SD 3 has them.",
  inputs: {
    clip_name1: fileName("text_encoders"),
    clip_name2: fileName("text_encoders"),
    clip_name3: fileName("text_encoders"),
  },
  outputs: { CLIP: "CLIP" },
  run: async (names, { host, signal, log }) => ({
    CLIP: await joinedClips(Object.values(names), { host, signal, log }),
  }),
});
