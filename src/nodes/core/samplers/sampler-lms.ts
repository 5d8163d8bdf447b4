import { defineNode } from "../../define.js";
import { int } from "../../inputs.js";
import { sampling } from "./options.js";

export const samplerLms = defineNode({
  key: "SamplerLMS",
  category: "sampling/custom_sampling/samplers",
  description: "Linear multistep method of at most this order.",
  inputs: { order: int({ default: 4, min: 1, max: 100 }) },
  outputs: { SAMPLER: "SAMPLER" },
  run: ({ order }) => sampling("lms", { order }),
});
