import { defineNode } from "../../define.js";
import { patchedModel } from "../../host-files.js";
import { float, image, mask, model, socket, vae } from "../../inputs.js";

export const qwenImageDiffsynthControlnet = defineNode({
  key: "QwenImageDiffsynthControlnet",
  category: "advanced/loaders/qwen",
  description: "Guides a model of Z-Image by a picture of outlines, depths or poses.",
  inputs: {
    model: model(),
    model_patch: socket("MODEL_PATCH"),
    vae: vae(),
    image: image(),
    strength: float({ default: 1, min: -10, max: 10, step: 0.01 }),
    mask: mask({ optional: true }),
  },
  outputs: { MODEL: "MODEL" },
  run: ({ model, ...inputs }, { host }) => ({
    MODEL: inputs.strength === 0 ? model : patchedModel(model, { node: "QwenImageDiffsynthControlnet", inputs }, host),
  }),
});
