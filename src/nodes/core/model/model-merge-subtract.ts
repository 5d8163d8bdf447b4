import { defineNode } from "../../define.js";
import { changedModel, merges } from "../../host-files.js";
import { float, model } from "../../inputs.js";

export const modelMergeSubtract = defineNode({
  key: "ModelMergeSubtract",
  category: "advanced/model_merging",
  description: "Subtracts the weights of the second model from those of the first.",
  inputs: {
    model1: changedModel(),
    model2: model(),
    multiplier: float({ default: 1, min: -10, max: 10, step: 0.01 }),
  },
  outputs: { MODEL: "MODEL" },
  run: merges("ModelMergeSubtract"),
});
