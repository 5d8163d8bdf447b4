import { defineNode } from "../../define.js";
import { changedModel, patches } from "../../host-files.js";
import { float } from "../../inputs.js";

export const freeU = defineNode({
  key: "FreeU",
  category: "model_patches/unet",
  description: "Rescales the backbone and the skip connections of a UNet.",
  inputs: {
    model: changedModel(),
    b1: float({ default: 1.1, min: 0, max: 10, step: 0.01 }),
    b2: float({ default: 1.2, min: 0, max: 10, step: 0.01 }),
    s1: float({ default: 0.9, min: 0, max: 10, step: 0.01 }),
    s2: float({ default: 0.2, min: 0, max: 10, step: 0.01 }),
  },
  outputs: { MODEL: "MODEL" },
  run: patches("FreeU"),
});
