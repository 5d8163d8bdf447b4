import { defineNode } from "../../define.js";
import { fileName, loadHostFile, patchedModel } from "../../host-files.js";
import { float, model } from "../../inputs.js";

export const hypernetworkLoader = defineNode({
  key: "HypernetworkLoader",
  category: "loaders",
  description: "Changes the attention of a model by a hypernetwork of the host.",
  inputs: {
    model: model(),
    hypernetwork_name: fileName("hypernetworks"),
    strength: float({ default: 1, min: -10, max: 10, step: 0.01 }),
  },
  outputs: { MODEL: "MODEL" },
  run: async ({ model, hypernetwork_name, strength }, { host, signal }) => {
    if (strength === 0) return { MODEL: model };
    const hypernetwork = await loadHostFile("hypernetworks", { hypernetwork_name }, { host, signal });
    const inputs = { hypernetwork, strength };
    return { MODEL: patchedModel(model, { node: "HypernetworkLoader", inputs }, host) };
  },
});
