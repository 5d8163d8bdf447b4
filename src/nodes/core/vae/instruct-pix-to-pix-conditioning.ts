import { Tensor } from "../../../tensor/tensor.js";
import { coloursOf, warnOfCut, wholeCells } from "../../cells.js";
import { withOptions } from "../../conditioning.js";
import { defineNode } from "../../define.js";
import { conditioning, image, vae } from "../../inputs.js";

export const instructPixToPixConditioning = defineNode({
  key: "InstructPixToPixConditioning",
  category: "conditioning/instructpix2pix",
  description: "Encodes an image for InstructPix2Pix models, which see it at every step; other models ignore it.",
  inputs: { positive: conditioning(), negative: conditioning(), vae: vae(), pixels: image() },
  outputs: [
    { name: "positive", type: "CONDITIONING" },
    { name: "negative", type: "CONDITIONING" },
    { name: "latent", type: "LATENT" },
  ],
  run: async ({ positive, negative, vae, pixels }, { log }) => {
    const concat_latent_image = await vae.encode(wholeCells(coloursOf(pixels, "pixels"), 1), log);
    warnOfCut(pixels, "pixels", log);
    return {
      positive: withOptions(positive, { concat_latent_image }),
      negative: withOptions(negative, { concat_latent_image }),
      latent: { samples: Tensor.zeros(concat_latent_image.shape) },
    };
  },
});
