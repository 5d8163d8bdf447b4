import { flux2Sigmas } from "../../../tensor/sampling/spaced-sigmas.js";
import { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { int } from "../../inputs.js";

/** Pixels that one token of the model covers. */
const PIXELS_OF_TOKEN = 16 * 16;
const side = () => int({ default: 1024, min: 16, max: 16384, step: 1 });

export const flux2Scheduler = defineNode({
  key: "Flux2Scheduler",
  category: "sampling/custom_sampling/schedulers",
  description: "Sigmas of Flux.2, which stay high for longer in large pictures and few steps.",
  inputs: { steps: int({ default: 20, min: 1, max: 4096 }), width: side(), height: side() },
  outputs: { SIGMAS: "SIGMAS" },
  run: ({ steps, width, height }) => {
    const sigmas = flux2Sigmas(steps, (width * height) / PIXELS_OF_TOKEN);
    return { SIGMAS: Tensor.from(sigmas, [sigmas.length]) };
  },
});
