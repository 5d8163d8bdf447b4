import { defineNode } from "../../define.js";
import { patchedModel } from "../../host-files.js";
import { float, image, mask, model, socket, vae } from "../../inputs.js";

export const zImageFunControlnet = defineNode({
  key: "ZImageFunControlnet",
  category: "advanced/loaders/zimage",
  description: "Guides a model of Z-Image by a picture, and has it repaint the masked part of another one.",
  inputs: {
    model: model(),
    model_patch: socket("MODEL_PATCH"),
    vae: vae(),
    strength: float({ default: 1, min: -10, max: 10, step: 0.01 }),
    image: image({ optional: true }),
    inpaint_image: image({ optional: true }),
    mask: mask({ optional: true }),
  },
  outputs: { MODEL: "MODEL" },
  run: ({ model, ...inputs }, { host }) => ({
    MODEL: inputs.strength === 0 ? model : patchedModel(model, { node: "ZImageFunControlnet", inputs }, host),
  }),
});
