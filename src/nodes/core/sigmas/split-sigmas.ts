import { defineNode } from "../../define.js";
import { int, sigmas } from "../../inputs.js";
import { part } from "./part.js";

export const splitSigmas = defineNode({
  key: "SplitSigmas",
  category: "sampling/custom_sampling/sigmas",
  description: "Splits sigmas at a step; both parts contain the sigma there.",
  inputs: { sigmas: sigmas(), step: int({ default: 0, min: 0, max: 10000 }) },
  outputs: [
    { name: "high_sigmas", type: "SIGMAS" },
    { name: "low_sigmas", type: "SIGMAS" },
  ],
  run: ({ sigmas, step }) => ({
    high_sigmas: part(sigmas, 0, step + 1),
    low_sigmas: part(sigmas, step),
  }),
});
