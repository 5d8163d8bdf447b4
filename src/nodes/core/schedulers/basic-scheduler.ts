import { SCHEDULERS, sigmas } from "../../../tensor/sampling/sigmas.js";
import { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { choice, float, model } from "../../inputs.js";
import { steps } from "./ends.js";

export const basicScheduler = defineNode({
  key: "BasicScheduler",
  category: "sampling/custom_sampling/schedulers",
  description: "Sigmas of a scheduler; denoise below 1 takes the end of a longer schedule.",
  inputs: {
    model: model(),
    scheduler: choice(SCHEDULERS),
    steps: steps(),
    denoise: float({ default: 1, min: 0, max: 1, step: 0.01 }),
  },
  outputs: { SIGMAS: "SIGMAS" },
  run: ({ model, scheduler, steps, denoise }) => {
    // ddim_uniform may have one more
    const levels = sigmas({ model: model.sampling, scheduler, steps, denoise }).slice(-(steps + 1));
    return { SIGMAS: Tensor.from(levels, [levels.length]) };
  },
});
