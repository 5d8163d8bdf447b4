import { warnOfCut } from "../../cells.js";
import { withOptions } from "../../conditioning.js";
import { defineNode } from "../../define.js";
import { boolean, conditioning, image, mask, vae } from "../../inputs.js";
import { inpaintImage } from "./inpaint-image.js";

export const inpaintModelConditioning = defineNode({
  key: "InpaintModelConditioning",
  displayName: "Inpaint Model Conditioning",
  category: "conditioning/inpaint",
  description: "Encodes images for an inpainting model, which sees the mask and its surroundings.",
  inputs: {
    positive: conditioning(),
    negative: conditioning(),
    vae: vae(),
    pixels: image(),
    mask: mask(),
    noise_mask: boolean({ default: true, tooltip: "Limits sampling to the mask as well." }),
  },
  outputs: [
    { name: "positive", type: "CONDITIONING" },
    { name: "negative", type: "CONDITIONING" },
    { name: "latent", type: "LATENT" },
  ],
  run: async ({ positive, negative, vae, pixels, mask: received, noise_mask }, { log }) => {
    const { hidden, mask, pixels: whole } = inpaintImage(pixels, received);
    warnOfCut(pixels, "pixels", log);
    const options = { concat_latent_image: await vae.encode(hidden, log), concat_mask: mask };
    const samples = await vae.encode(whole, log);
    return {
      positive: withOptions(positive, options),
      negative: withOptions(negative, options),
      latent: noise_mask ? { samples, noise_mask: mask } : { samples },
    };
  },
});
