import { defineNode } from "../../define.js";
import { changedModel, patches } from "../../host-files.js";
import { float, text } from "../../inputs.js";

export const skipLayerGuidanceSd3 = defineNode({
  key: "SkipLayerGuidanceSD3",
  category: "advanced/guidance",
  description: "Guides away from an estimate without some layers of the model.",
  inputs: {
    model: changedModel(["scale", 0]),
    layers: text({ default: "7, 8, 9" }),
    scale: float({ default: 3, min: 0, max: 10, step: 0.1 }),
    start_percent: float({ default: 0.01, min: 0, max: 1, step: 0.001 }),
    end_percent: float({ default: 0.15, min: 0, max: 1, step: 0.001 }),
  },
  outputs: { MODEL: "MODEL" },
  run: patches("SkipLayerGuidanceSD3", "scale"),
});
