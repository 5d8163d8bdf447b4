import { defineNode } from "../../define.js";
import { changedModel, patches } from "../../host-files.js";
import { float } from "../../inputs.js";

export const tomePatchModel = defineNode({
  key: "TomePatchModel",
  category: "model_patches/unet",
  description: "Merges similar tokens in a UNet, which makes it faster.",
  inputs: {
    model: changedModel(["ratio", 0]),
    ratio: float({ default: 0.3, min: 0, max: 1, step: 0.01 }),
  },
  outputs: { MODEL: "MODEL" },
  run: patches("TomePatchModel", "ratio"),
});
