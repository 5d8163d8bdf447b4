import { defineNode } from "../../define.js";

export const disableNoise = defineNode({
  key: "DisableNoise",
  category: "sampling/custom_sampling/noise",
  description: "No initial noise, for latents that already have it.",
  inputs: {},
  outputs: { NOISE: "NOISE" },
  run: () => ({ NOISE: { seed: 0n, enabled: false } }),
});
