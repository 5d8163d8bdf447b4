import { scheduledSigmas } from "../../../host/sampling/schedule.js";
import { SCHEDULERS } from "../../../tensor/sampling/sigmas.js";
import { defineNode } from "../../define.js";
import { choice, conditioning, float, int, latent, model, seed } from "../../inputs.js";
import { samplerName } from "../../sampler-names.js";
import { sampleInNode } from "./run-sampling.js";

export const kSamplerAdvanced = defineNode({
  key: "KSamplerAdvanced",
  displayName: "KSampler (Advanced)",
  category: "sampling",
  description: "Denoises a latent over a range of steps; can start without added noise and end with noise left over.",
  inputs: {
    model: model(),
    add_noise: choice(["enable", "disable"]),
    noise_seed: seed(),
    steps: int({ default: 20, min: 1, max: 10000 }),
    cfg: float({ default: 8, min: 0, max: 100, step: 0.1 }),
    sampler_name: samplerName(),
    scheduler: choice(SCHEDULERS),
    positive: conditioning(),
    negative: conditioning(),
    latent_image: latent(),
    start_at_step: int({ default: 0, min: 0, max: 10000 }),
    end_at_step: int({ default: 10000, min: 0, max: 10000 }),
    return_with_leftover_noise: choice(["disable", "enable"]),
  },
  outputs: { LATENT: "LATENT" },
  noiseStream: () => "cpu",
  run: async (inputs, { signal, progress, log }) => {
    const { model, positive, negative, cfg, steps, scheduler } = inputs;
    const sampler = inputs.sampler_name;
    const leavesNoise = inputs.return_with_leftover_noise === "enable";
    const window = { start: inputs.start_at_step, end: inputs.end_at_step, leavesNoise };
    const options = {
      guider: { kind: "cfg" as const, model, positive, negative, cfg },
      sampler: { sampler, options: {} },
      sigmas: scheduledSigmas({ model: model.sampling, sampler, scheduler, steps }, window),
      noise: { seed: inputs.noise_seed, enabled: inputs.add_noise === "enable" },
      latent: inputs.latent_image,
    };
    return { LATENT: await sampleInNode({ signal, progress, log }, options) };
  },
});
