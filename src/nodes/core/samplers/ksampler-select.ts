import { SAMPLERS } from "../../../tensor/sampling/sigmas.js";
import { defineNode } from "../../define.js";
import { choice } from "../../inputs.js";

export const kSamplerSelect = defineNode({
  key: "KSamplerSelect",
  displayName: "KSamplerSelect",
  category: "sampling/custom_sampling/samplers",
  description: "A sampler by its name, with the options that it has by itself.",
  inputs: { sampler_name: choice(SAMPLERS) },
  outputs: { SAMPLER: "SAMPLER" },
  run: ({ sampler_name }) => ({ SAMPLER: { sampler: sampler_name, options: {} } }),
});
