import { defineNode } from "../../define.js";
import { float, model } from "../../inputs.js";
import { resampled, samplingFor } from "./resample.js";

export const modelSamplingStableCascade = defineNode({
  key: "ModelSamplingStableCascade",
  category: "advanced/model",
  description: "Shifts the noise schedule of a Stable Cascade model.",
  inputs: { model: model(), shift: float({ default: 2, min: 0, max: 100, step: 0.01 }) },
  outputs: { MODEL: "MODEL" },
  run: ({ model, shift }, { host }) => {
    const patch = { node: "ModelSamplingStableCascade", inputs: { shift } };
    return { MODEL: resampled(model, samplingFor(model, "cascade-c", { shift }), patch, host) };
  },
});
