import { defineNode } from "../../define.js";
import { fileName, loadHostFile } from "../../host-files.js";

export const gligenLoader = defineNode({
  key: "GLIGENLoader",
  category: "loaders",
  description: "Loads a GLIGEN model of the host, which places prompts in boxes.",
  inputs: { gligen_name: fileName("gligen") },
  outputs: { GLIGEN: "GLIGEN" },
  run: async ({ gligen_name }, { host, signal, log }) => ({
    GLIGEN: await loadHostFile("gligen", { gligen_name }, { host, signal, log }),
  }),
});
