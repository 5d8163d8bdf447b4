import { defineNode } from "../../define.js";
import { conditioning, float, socket } from "../../inputs.js";

export const unclipConditioning = defineNode({
  key: "unCLIPConditioning",
  displayName: "unCLIP Conditioning",
  category: "conditioning",
  description: "Adds an encoded picture to a conditioning, for models that take one as a prompt.",
  inputs: {
    conditioning: conditioning(),
    clip_vision_output: socket("CLIP_VISION_OUTPUT"),
    strength: float({ default: 1, min: -10, max: 10, step: 0.01 }),
    noise_augmentation: float({ default: 0, min: 0, max: 1, step: 0.01 }),
  },
  outputs: { CONDITIONING: "CONDITIONING" },
  run: ({ conditioning, ...picture }) => {
    if (picture.strength === 0) return { CONDITIONING: conditioning };
    return {
      CONDITIONING: conditioning.map(([tokens, options]) => {
        const { unclip_conditioning: before } = options;
        const pictures = [...(Array.isArray(before) ? before : []), picture];
        return [tokens, { ...options, unclip_conditioning: pictures }];
      }),
    };
  },
});
