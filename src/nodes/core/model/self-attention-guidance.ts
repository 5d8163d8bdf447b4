import { defineNode } from "../../define.js";
import { changedModel, patches } from "../../host-files.js";
import { float } from "../../inputs.js";

export const selfAttentionGuidance = defineNode({
  key: "SelfAttentionGuidance",
  displayName: "Self-Attention Guidance",
  category: "_for_testing",
  description: "Guides away from an estimate blurred where the model attends.",
  inputs: {
    model: changedModel(["scale", 0]),
    scale: float({ default: 0.5, min: -2, max: 5, step: 0.01 }),
    blur_sigma: float({ default: 2, min: 0, max: 10, step: 0.1 }),
  },
  outputs: { MODEL: "MODEL" },
  run: patches("SelfAttentionGuidance", "scale"),
});
