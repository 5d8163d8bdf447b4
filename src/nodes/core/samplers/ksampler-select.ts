import { defineNode } from "../../define.js";
import { samplerName } from "../../sampler-names.js";

export const kSamplerSelect = defineNode({
  key: "KSamplerSelect",
  category: "sampling/custom_sampling/samplers",
  description: "A sampler by name, with its default options.",
  inputs: { sampler_name: samplerName() },
  outputs: { SAMPLER: "SAMPLER" },
  run: ({ sampler_name }) => ({ SAMPLER: { sampler: sampler_name, options: {} } }),
});
