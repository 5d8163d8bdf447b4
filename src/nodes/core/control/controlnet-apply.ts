import { defineNode } from "../../define.js";
import { conditioning, image } from "../../inputs.js";
import { controlInputs, controlled, controlNet } from "./controlled.js";

export const controlNetApply = defineNode({
  key: "ControlNetApply",
  displayName: "Apply ControlNet (OLD)",
  category: "conditioning/controlnet",
  description: "Guides a model by a picture, on the negative side as well.",
  deprecated: true,
  inputs: {
    conditioning: conditioning(),
    control_net: controlNet(),
    image: image(),
    strength: controlInputs().strength,
  },
  outputs: { CONDITIONING: "CONDITIONING" },
  run: ({ conditioning, control_net: net, image: hint, strength }) => {
    if (strength === 0) return { CONDITIONING: conditioning };
    const [CONDITIONING] = controlled([conditioning], { net, hint, strength, start: 0, end: 1 }, true);
    return { CONDITIONING };
  },
});
