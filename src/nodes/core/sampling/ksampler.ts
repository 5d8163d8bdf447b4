import { scheduledSigmas } from "../../../host/sampling/schedule.js";
import { SCHEDULERS } from "../../../tensor/sampling/sigmas.js";
import { defineNode } from "../../define.js";
import { choice, conditioning, float, int, latent, model, seed } from "../../inputs.js";
import { samplerName } from "../../sampler-names.js";
import { sampleInNode } from "./run-sampling.js";

export const kSampler = defineNode({
  key: "KSampler",
  category: "sampling",
  description: "Denoises a latent; with denoise below 1 the result resembles it.",
  inputs: {
    model: model(),
    seed: seed(),
    steps: int({ default: 20, min: 1, max: 10000 }),
    cfg: float({ default: 8, min: 0, max: 100, step: 0.1 }),
    sampler_name: samplerName(),
    scheduler: choice(SCHEDULERS),
    positive: conditioning(),
    negative: conditioning(),
    latent_image: latent(),
    denoise: float({ default: 1, min: 0, max: 1, step: 0.01 }),
  },
  outputs: { LATENT: "LATENT" },
  noiseStream: () => "cpu",
  run: async (inputs, { signal, progress, log }) => {
    const { model, positive, negative, cfg, seed, steps, scheduler, denoise } = inputs;
    const sampler = inputs.sampler_name;
    const sigmas = scheduledSigmas({ model: model.sampling, sampler, scheduler, steps, denoise });
    const options = {
      guider: { kind: "cfg" as const, model, positive, negative, cfg },
      sampler: { sampler, options: {} },
      sigmas,
      noise: { seed, enabled: true },
      latent: inputs.latent_image,
    };
    return { LATENT: await sampleInNode({ signal, progress, log }, options) };
  },
});
