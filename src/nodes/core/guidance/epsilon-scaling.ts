import { derivedModel } from "../../../host/derived-model.js";
import { weightedSum } from "../../../tensor/ops.js";
import { defineNode } from "../../define.js";
import { float, model } from "../../inputs.js";

// Ning et al. 2023, "Elucidating the Exposure Bias in Diffusion Models": the predicted noise is divided by a factor
export const epsilonScaling = defineNode({
  key: "Epsilon Scaling",
  category: "model_patches/unet",
  description: "Divides the predicted noise by a factor near 1, which sharpens pictures.",
  inputs: { model: model(), scaling_factor: float({ default: 1.005, min: 0.5, max: 1.5, step: 0.001 }) },
  outputs: { MODEL: "MODEL" },
  run: ({ model, scaling_factor }) => ({
    MODEL: derivedModel(model, {
      guidance: (before) => ({
        ...before,
        after: [
          ...(before?.after ?? []),
          (denoised, { x }) =>
            weightedSum([
              [1 - 1 / scaling_factor, x],
              [1 / scaling_factor, denoised],
            ]),
        ],
      }),
    }),
  }),
});
