import { defineNode } from "../../define.js";
import { float, model } from "../../inputs.js";
import { resampled, samplingFor } from "./resample.js";

export const modelSamplingSd3 = defineNode({
  key: "ModelSamplingSD3",
  category: "advanced/model",
  description: "Shifts the noise schedule of a flow model.",
  inputs: { model: model(), shift: float({ default: 3, min: 0, max: 100, step: 0.01 }) },
  outputs: { MODEL: "MODEL" },
  run: ({ model, shift }, { host }) => {
    const patch = { node: "ModelSamplingSD3", inputs: { shift } };
    return { MODEL: resampled(model, samplingFor(model, "sd3", { shift }), patch, host) };
  },
});
