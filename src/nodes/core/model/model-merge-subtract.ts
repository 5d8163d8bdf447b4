import { defineNode } from "../../define.js";
import { ofHost, patchedModel } from "../../host-files.js";
import { float, model } from "../../inputs.js";

export const modelMergeSubtract = defineNode({
  key: "ModelMergeSubtract",
  displayName: "ModelMergeSubtract",
  category: "advanced/model_merging",
  description: "Subtracts the weights of the second model from those of the first.",
  inputs: {
    model1: model(),
    model2: model(),
    multiplier: float({ default: 1, min: -10, max: 10, step: 0.01 }),
  },
  outputs: { MODEL: "MODEL" },
  run: ({ model1, model2, ...inputs }, { host }) => {
    const patch = { node: "ModelMergeSubtract", inputs: { ...inputs, ...ofHost({ model2 }) } };
    return { MODEL: patchedModel(model1, patch, host) };
  },
});
