import { defineNode } from "../../define.js";
import { fileName, loadHostFile } from "../../host-files.js";
import { choice } from "../../inputs.js";
import { CLIP_FAMILIES } from "./clip-loader.js";

export const clipLoaderGguf = defineNode({
  key: "CLIPLoaderGGUF",
  displayName: "CLIPLoader (GGUF)",
  category: "advanced/loaders",
  description: "Loads a text encoder of the host, as CLIPLoader does.",
  inputs: { clip_name: fileName("text_encoders"), type: choice(CLIP_FAMILIES) },
  outputs: { CLIP: "CLIP" },
  run: async ({ clip_name, type }, { host, signal, log }) => ({
    CLIP: await loadHostFile("text_encoders", { clip_name }, { host, signal, log }, { type }),
  }),
});
