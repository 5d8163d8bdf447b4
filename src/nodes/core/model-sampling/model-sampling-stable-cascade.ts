import { defineNode } from "../../define.js";
import { float, model } from "../../inputs.js";
import { resampled, samplingFor } from "./resample.js";

export const modelSamplingStableCascade = defineNode({
  key: "ModelSamplingStableCascade",
  displayName: "ModelSamplingStableCascade",
  category: "advanced/model",
  description: "A model of Stable Cascade along noise that is shifted to higher levels.",
  inputs: { model: model(), shift: float({ default: 2, min: 0, max: 100, step: 0.01 }) },
  outputs: { MODEL: "MODEL" },
  run: ({ model, shift }, { host }) => {
    const patch = { node: "ModelSamplingStableCascade", inputs: { shift } };
    return { MODEL: resampled(model, samplingFor(model, "cascade-c", { shift }), patch, host) };
  },
});
