import { withOptions } from "../../conditioning.js";
import { defineNode } from "../../define.js";
import { conditioning, float } from "../../inputs.js";

export const fluxGuidance = defineNode({
  key: "FluxGuidance",
  category: "advanced/conditioning/flux",
  description: "Sets the strength of the guidance that Flux models have learned; other models ignore it.",
  inputs: { conditioning: conditioning(), guidance: float({ default: 3.5, min: 0, max: 100, step: 0.1 }) },
  outputs: { CONDITIONING: "CONDITIONING" },
  run: ({ conditioning, guidance }) => ({ CONDITIONING: withOptions(conditioning, { guidance }) }),
});
