import { defineNode } from "../../define.js";
import { changedModel, patches } from "../../host-files.js";
import { float } from "../../inputs.js";

export const freeUV2 = defineNode({
  key: "FreeU_V2",
  category: "model_patches/unet",
  description: "Rescales the backbone and the skip connections of a UNet by the strength of its features.",
  inputs: {
    model: changedModel(),
    b1: float({ default: 1.3, min: 0, max: 10, step: 0.01 }),
    b2: float({ default: 1.4, min: 0, max: 10, step: 0.01 }),
    s1: float({ default: 0.9, min: 0, max: 10, step: 0.01 }),
    s2: float({ default: 0.2, min: 0, max: 10, step: 0.01 }),
  },
  outputs: { MODEL: "MODEL" },
  run: patches("FreeU_V2"),
});
