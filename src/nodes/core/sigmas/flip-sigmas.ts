import { defineNode } from "../../define.js";
import { sigmas } from "../../inputs.js";
import { part } from "./part.js";

export const flipSigmas = defineNode({
  key: "FlipSigmas",
  category: "sampling/custom_sampling/sigmas",
  description: "Sigmas from the last to the first, to add noise step by step; a leading 0 becomes 0.0001.",
  inputs: { sigmas: sigmas() },
  outputs: { SIGMAS: "SIGMAS" },
  run: ({ sigmas }) => {
    const flipped = part(sigmas);
    flipped.data.reverse();
    if (flipped.data[0] === 0) flipped.data[0] = 0.0001;
    return { SIGMAS: flipped };
  },
});
