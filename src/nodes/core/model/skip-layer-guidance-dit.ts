import { defineNode } from "../../define.js";
import { changedModel, patches } from "../../host-files.js";
import { float, text } from "../../inputs.js";

export const skipLayerGuidanceDit = defineNode({
  key: "SkipLayerGuidanceDiT",
  category: "advanced/guidance",
  description: "Guides away from an estimate without some layers of the model.",
  inputs: {
    model: changedModel(),
    double_layers: text({ default: "7, 8, 9" }),
    single_layers: text({ default: "7, 8, 9" }),
    scale: float({ default: 3, min: 0, max: 10, step: 0.1 }),
    start_percent: float({ default: 0.01, min: 0, max: 1, step: 0.001 }),
    end_percent: float({ default: 0.15, min: 0, max: 1, step: 0.001 }),
    rescaling_scale: float({ default: 0, min: 0, max: 10, step: 0.01 }),
  },
  outputs: { MODEL: "MODEL" },
  run: patches("SkipLayerGuidanceDiT"),
});
