import { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { float, int, model } from "../../inputs.js";

export const sdTurboScheduler = defineNode({
  key: "SDTurboScheduler",
  category: "sampling/custom_sampling/schedulers",
  description: "Sigmas of the model at timesteps 999, 899, … of its turbo training, and 0.",
  inputs: {
    model: model(),
    steps: int({ default: 1, min: 1, max: 10 }),
    denoise: float({ default: 1, min: 0, max: 1, step: 0.01 }),
  },
  outputs: { SIGMAS: "SIGMAS" },
  run: ({ model, steps, denoise }) => {
    const skipped = 10 - Math.floor(10 * denoise);
    const timesteps = Array.from({ length: 10 }, (_, i) => 999 - 100 * i).slice(skipped, skipped + steps);
    const levels = timesteps.map((timestep) => model.sampling.sigma(timestep));
    return { SIGMAS: Tensor.from([...levels, 0], [levels.length + 1]) };
  },
});
