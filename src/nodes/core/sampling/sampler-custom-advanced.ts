import { defineNode } from "../../define.js";
import { guider, latent, noise, sampler, sigmas } from "../../inputs.js";
import { sampleInNodeWithEstimate } from "./run-sampling.js";

export const samplerCustomAdvanced = defineNode({
  key: "SamplerCustomAdvanced",
  category: "sampling/custom_sampling",
  description:
    "Denoises a latent with a guider, a sampler and sigmas; the second output is the last estimate of the clean latent.",
  inputs: { noise: noise(), guider: guider(), sampler: sampler(), sigmas: sigmas(), latent_image: latent() },
  outputs: [
    { name: "output", type: "LATENT" },
    { name: "denoised_output", type: "LATENT" },
  ],
  run: async ({ noise, guider, sampler, sigmas, latent_image }, { signal, progress, log }) => {
    const options = { noise, guider, sampler, sigmas: sigmas.data, latent: latent_image };
    const { latent, denoised } = await sampleInNodeWithEstimate({ signal, progress, log }, options);
    return { output: latent, denoised_output: denoised };
  },
});
