import { defineNode } from "../../define.js";
import { changedModel, fileName, loadHostFile, patchedModel } from "../../host-files.js";
import { float } from "../../inputs.js";

export const hypernetworkLoader = defineNode({
  key: "HypernetworkLoader",
  category: "loaders",
  description: "Changes the attention of a model by a hypernetwork of the host.",
  inputs: {
    model: changedModel(["strength", 0]),
    hypernetwork_name: fileName("hypernetworks"),
    strength: float({ default: 1, min: -10, max: 10, step: 0.01 }),
  },
  outputs: { MODEL: "MODEL" },
  run: async ({ model, hypernetwork_name, strength }, { host, signal, log }) => {
    if (strength === 0) return { MODEL: model };
    const hypernetwork = await loadHostFile("hypernetworks", { hypernetwork_name }, { host, signal, log });
    const inputs = { hypernetwork, strength };
    return { MODEL: patchedModel(model, { node: "HypernetworkLoader", inputs }, host) };
  },
});
