import { defineNode } from "../../define.js";
import { ofHost, patchedModel } from "../../host-files.js";
import { model } from "../../inputs.js";

export const modelMergeAdd = defineNode({
  key: "ModelMergeAdd",
  displayName: "ModelMergeAdd",
  category: "advanced/model_merging",
  description: "Adds the weights of two models.",
  inputs: {
    model1: model(),
    model2: model(),
  },
  outputs: { MODEL: "MODEL" },
  run: ({ model1, model2 }, { host }) => {
    const patch = { node: "ModelMergeAdd", inputs: ofHost({ model2 }) };
    return { MODEL: patchedModel(model1, patch, host) };
  },
});
