import { defineNode } from "../../define.js";
import { changedModel, ofHost, patchedModel } from "../../host-files.js";
import { float, model } from "../../inputs.js";

export const modelMergeSimple = defineNode({
  key: "ModelMergeSimple",
  category: "advanced/model_merging",
  description: "Mixes the weights of two models; ratio is the share of the first.",
  inputs: {
    model1: changedModel(["ratio", 1]),
    model2: model(),
    ratio: float({ default: 1, min: 0, max: 1, step: 0.01 }),
  },
  outputs: { MODEL: "MODEL" },
  run: ({ model1, model2, ...inputs }, { host }) => {
    if (inputs.ratio === 1) return { MODEL: model1 };
    const patch = { node: "ModelMergeSimple", inputs: { ...inputs, ...ofHost({ model2 }) } };
    return { MODEL: patchedModel(model1, patch, host) };
  },
});
