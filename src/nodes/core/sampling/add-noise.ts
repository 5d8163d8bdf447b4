import { addedNoise } from "../../../host/sampling/added-noise.js";
import { defineNode } from "../../define.js";
import { latent, model, noise, sigmas } from "../../inputs.js";

export const addNoise = defineNode({
  key: "AddNoise",
  category: "_for_testing/custom_sampling/noise",
  description: "Adds the noise that the steps from the first to the last sigma would remove.",
  inputs: { model: model(), noise: noise(), sigmas: sigmas(), latent_image: latent() },
  outputs: { LATENT: "LATENT" },
  run: ({ model, noise, sigmas, latent_image }) => ({
    LATENT: addedNoise(model.sampling, noise, sigmas.data, latent_image),
  }),
});
