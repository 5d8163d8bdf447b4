import { defineNode } from "../../define.js";
import { conditioning, image, vae } from "../../inputs.js";
import { controlInputs, controlled, controlNet } from "./controlled.js";

export const controlNetApplySd3 = defineNode({
  key: "ControlNetApplySD3",
  displayName: "Apply Controlnet with VAE",
  category: "conditioning/controlnet",
  description: "Guides a model by a picture in a range of the schedule; a VAE encodes it where the net needs that.",
  deprecated: true,
  inputs: {
    positive: conditioning(),
    negative: conditioning(),
    control_net: controlNet(),
    vae: vae(),
    image: image(),
    ...controlInputs(),
  },
  outputs: [
    { name: "positive", type: "CONDITIONING" },
    { name: "negative", type: "CONDITIONING" },
  ],
  run: ({ positive, negative, control_net: net, image: hint, vae, ...range }) => {
    const { strength, start_percent: start, end_percent: end } = range;
    if (strength === 0) return { positive, negative };
    const sides = controlled([positive, negative], { net, hint, strength, start, end, vae });
    return { positive: sides[0], negative: sides[1] };
  },
});
