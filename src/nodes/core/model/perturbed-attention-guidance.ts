import { defineNode } from "../../define.js";
import { changedModel, patches } from "../../host-files.js";
import { float } from "../../inputs.js";

export const perturbedAttentionGuidance = defineNode({
  key: "PerturbedAttentionGuidance",
  category: "model_patches/unet",
  description: "Guides away from an estimate without self-attention.",
  inputs: {
    model: changedModel(["scale", 0]),
    scale: float({ default: 3, min: 0, max: 100, step: 0.01 }),
  },
  outputs: { MODEL: "MODEL" },
  run: patches("PerturbedAttentionGuidance", "scale"),
});
