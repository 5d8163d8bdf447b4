import { defineNode } from "../../define.js";
import { float, model } from "../../inputs.js";
import { resampled, samplingFor } from "./resample.js";

export const modelSamplingAuraFlow = defineNode({
  key: "ModelSamplingAuraFlow",
  category: "advanced/model",
  description: "Shifts the noise schedule of a flow model whose timesteps run from 0 to 1.",
  inputs: { model: model(), shift: float({ default: 1.73, min: 0, max: 100, step: 0.01 }) },
  outputs: { MODEL: "MODEL" },
  run: ({ model, shift }, { host }) => {
    const patch = { node: "ModelSamplingAuraFlow", inputs: { shift } };
    return { MODEL: resampled(model, samplingFor(model, "auraflow", { shift }), patch, host) };
  },
});
