import { sampleWithEstimate } from "../../../host/sampling/sample.js";
import { defineNode } from "../../define.js";
import { guider, latent, noise, sampler, sigmas } from "../../inputs.js";
import { inNode } from "./run-sampling.js";

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
  run: async ({ noise, guider, sampler, sigmas, latent_image }, { signal, progress }) => {
    const options = { noise, guider, sampler, sigmas: sigmas.data, latent: latent_image };
    const { latent, denoised } = await sampleWithEstimate(inNode({ signal, progress }, options));
    return { output: latent, denoised_output: denoised };
  },
});
