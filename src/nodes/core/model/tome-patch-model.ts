import { defineNode } from "../../define.js";
import { patchedModel } from "../../host-files.js";
import { float, model } from "../../inputs.js";

export const tomePatchModel = defineNode({
  key: "TomePatchModel",
  displayName: "TomePatchModel",
  category: "model_patches/unet",
  description: "Merges similar tokens in a UNet, which makes it faster.",
  inputs: {
    model: model(),
    ratio: float({ default: 0.3, min: 0, max: 1, step: 0.01 }),
  },
  outputs: { MODEL: "MODEL" },
  run: ({ model, ...inputs }, { host }) => {
    if (inputs.ratio === 0) return { MODEL: model };
    return { MODEL: patchedModel(model, { node: "TomePatchModel", inputs }, host) };
  },
});
