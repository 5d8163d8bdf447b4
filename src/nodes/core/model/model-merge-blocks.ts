import { defineNode } from "../../define.js";
import { changedModel, merges } from "../../host-files.js";
import { float, model } from "../../inputs.js";

export const modelMergeBlocks = defineNode({
  key: "ModelMergeBlocks",
  category: "advanced/model_merging",
  description: "Mixes the weights of two models block by block; each number is the share of the first.",
  inputs: {
    model1: changedModel(),
    model2: model(),
    input: float({ default: 1, min: 0, max: 1, step: 0.01 }),
    middle: float({ default: 1, min: 0, max: 1, step: 0.01 }),
    out: float({ default: 1, min: 0, max: 1, step: 0.01 }),
  },
  outputs: { MODEL: "MODEL" },
  run: merges("ModelMergeBlocks"),
});
