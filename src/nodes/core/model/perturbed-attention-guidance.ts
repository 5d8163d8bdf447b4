import { defineNode } from "../../define.js";
import { patches } from "../../host-files.js";
import { float, model } from "../../inputs.js";

export const perturbedAttentionGuidance = defineNode({
  key: "PerturbedAttentionGuidance",
  category: "model_patches/unet",
  description: "Guides away from an estimate without self-attention.",
  inputs: {
    model: model(),
    scale: float({ default: 3, min: 0, max: 100, step: 0.01 }),
  },
  outputs: { MODEL: "MODEL" },
  run: patches("PerturbedAttentionGuidance", "scale"),
});
