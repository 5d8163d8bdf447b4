import { defineNode } from "../../define.js";
import { fileName, loadHostFile } from "../../host-files.js";
import { model } from "../../inputs.js";

export const diffControlNetLoader = defineNode({
  key: "DiffControlNetLoader",
  displayName: "Load ControlNet Model (diff)",
  category: "loaders",
  description: "Loads a ControlNet of the host; one of differences is added to the model that it guides.",
  inputs: { model: model(), control_net_name: fileName("controlnet") },
  outputs: { CONTROL_NET: "CONTROL_NET" },
  run: async ({ control_net_name }, { host, signal, log }) => ({
    CONTROL_NET: await loadHostFile("controlnet", { control_net_name }, { host, signal, log }),
  }),
});
