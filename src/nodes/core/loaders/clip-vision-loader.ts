import { defineNode } from "../../define.js";
import { fileName, loadHostFile } from "../../host-files.js";

export const clipVisionLoader = defineNode({
  key: "CLIPVisionLoader",
  displayName: "Load CLIP Vision",
  category: "loaders",
  description: "Loads a CLIP vision encoder of the host.",
  inputs: { clip_name: fileName("clip_vision") },
  outputs: { CLIP_VISION: "CLIP_VISION" },
  run: async ({ clip_name }, { host, signal, log }) => ({
    CLIP_VISION: await loadHostFile("clip_vision", { clip_name }, { host, signal, log }),
  }),
});
