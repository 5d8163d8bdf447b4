import { withOptions } from "../../conditioning.js";
import { defineNode } from "../../define.js";
import { conditioning } from "../../inputs.js";

export const fluxDisableGuidance = defineNode({
  key: "FluxDisableGuidance",
  category: "advanced/conditioning/flux",
  description: "Switches off the guidance that Flux models have learned; other models ignore it.",
  inputs: { conditioning: conditioning() },
  outputs: { CONDITIONING: "CONDITIONING" },
  run: ({ conditioning }) => ({ CONDITIONING: withOptions(conditioning, { guidance: null }) }),
});
