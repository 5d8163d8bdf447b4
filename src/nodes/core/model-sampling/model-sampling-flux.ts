import { defineNode } from "../../define.js";
import { float, int, model } from "../../inputs.js";
import { resampled, samplingFor } from "./resample.js";

/** Pixels that one token of the model covers. */
const PIXELS_OF_TOKEN = 16 * 16;
/** Numbers of tokens that the two shifts belong to. */
const FEW_TOKENS = 256;
const MANY_TOKENS = 4096;

export const modelSamplingFlux = defineNode({
  key: "ModelSamplingFlux",
  category: "advanced/model",
  description: "Shifts the noise schedule of a flow model by the size of the picture.",
  inputs: {
    model: model(),
    max_shift: float({ default: 1.15, min: 0, max: 100, step: 0.01 }),
    base_shift: float({ default: 0.5, min: 0, max: 100, step: 0.01 }),
    width: int({ default: 1024, min: 16, max: 16384, step: 8 }),
    height: int({ default: 1024, min: 16, max: 16384, step: 8 }),
  },
  outputs: { MODEL: "MODEL" },
  run: ({ model, ...inputs }, { host }) => {
    const { max_shift, base_shift, width, height } = inputs;
    const slope = (max_shift - base_shift) / (MANY_TOKENS - FEW_TOKENS);
    const shift = ((width * height) / PIXELS_OF_TOKEN) * slope + (base_shift - slope * FEW_TOKENS);
    const patch = { node: "ModelSamplingFlux", inputs };
    return { MODEL: resampled(model, samplingFor(model, "flux", { shift }), patch, host) };
  },
});
