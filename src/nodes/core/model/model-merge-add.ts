import { defineNode } from "../../define.js";
import { changedModel, merges } from "../../host-files.js";
import { model } from "../../inputs.js";

export const modelMergeAdd = defineNode({
  key: "ModelMergeAdd",
  category: "advanced/model_merging",
  description: "Adds the weights of two models.",
  inputs: {
    model1: changedModel(),
    model2: model(),
  },
  outputs: { MODEL: "MODEL" },
  run: merges("ModelMergeAdd"),
});
