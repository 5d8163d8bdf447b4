import { defineNode } from "../../define.js";
import { boolean, conditioning, float, latent, model, sampler, seed, sigmas } from "../../inputs.js";
import { sampleInNodeWithEstimate } from "./run-sampling.js";

export const samplerCustom = defineNode({
  key: "SamplerCustom",
  category: "sampling/custom_sampling",
  description:
    "Denoises a latent with a sampler and sigmas; the second output is the last estimate of the clean latent.",
  inputs: {
    model: model(),
    add_noise: boolean({ default: true }),
    noise_seed: seed(),
    cfg: float({ default: 8, min: 0, max: 100, step: 0.1 }),
    positive: conditioning(),
    negative: conditioning(),
    sampler: sampler(),
    sigmas: sigmas(),
    latent_image: latent(),
  },
  outputs: [
    { name: "output", type: "LATENT" },
    { name: "denoised_output", type: "LATENT" },
  ],
  noiseStream: () => "cpu",
  run: async ({ model, positive, negative, cfg, sampler, sigmas, ...inputs }, { signal, progress, log }) => {
    const options = {
      guider: { kind: "cfg" as const, model, positive, negative, cfg },
      sampler,
      sigmas: sigmas.data,
      noise: { seed: inputs.noise_seed, enabled: inputs.add_noise },
      latent: inputs.latent_image,
    };
    const { latent, denoised } = await sampleInNodeWithEstimate({ signal, progress, log }, options);
    return { output: latent, denoised_output: denoised };
  },
});
