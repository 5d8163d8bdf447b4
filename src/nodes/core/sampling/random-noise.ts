import { defineNode } from "../../define.js";
import { seed } from "../../inputs.js";

export const randomNoise = defineNode({
  key: "RandomNoise",
  category: "sampling/custom_sampling/noise",
  description: "Initial noise of a seed, for custom sampling.",
  inputs: { noise_seed: seed() },
  outputs: { NOISE: "NOISE" },
  noiseStream: () => "cpu",
  run: ({ noise_seed }) => ({ NOISE: { seed: noise_seed, enabled: true } }),
});
