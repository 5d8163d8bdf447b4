import { roundHalfEven } from "../../../tensor/rounding.js";
import { defineNode } from "../../define.js";
import { float, sigmas } from "../../inputs.js";
import { part } from "./part.js";

export const splitSigmasDenoise = defineNode({
  key: "SplitSigmasDenoise",
  category: "sampling/custom_sampling/sigmas",
  description: "Splits sigmas so that the second part has this share of the steps.",
  inputs: { sigmas: sigmas(), denoise: float({ default: 1, min: 0, max: 1, step: 0.01 }) },
  outputs: [
    { name: "high_sigmas", type: "SIGMAS" },
    { name: "low_sigmas", type: "SIGMAS" },
  ],
  run: ({ sigmas, denoise }) => {
    const taken = roundHalfEven(Math.max(sigmas.size - 1, 0) * denoise);
    return { high_sigmas: part(sigmas, 0, -taken), low_sigmas: part(sigmas, -(taken + 1)) };
  },
});
