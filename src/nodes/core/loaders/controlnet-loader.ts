import { defineNode } from "../../define.js";
import { fileName, loadHostFile } from "../../host-files.js";

export const controlNetLoader = defineNode({
  key: "ControlNetLoader",
  displayName: "Load ControlNet Model",
  category: "loaders",
  description: "Loads a ControlNet or T2I adapter of the host.",
  inputs: { control_net_name: fileName("controlnet") },
  outputs: { CONTROL_NET: "CONTROL_NET" },
  run: async ({ control_net_name }, { host, signal, log }) => ({
    CONTROL_NET: await loadHostFile("controlnet", { control_net_name }, { host, signal, log }),
  }),
});
