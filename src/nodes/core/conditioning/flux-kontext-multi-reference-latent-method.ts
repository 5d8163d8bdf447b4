import { withOptions } from "../../conditioning.js";
import { defineNode } from "../../define.js";
import { choice, conditioning } from "../../inputs.js";

export const fluxKontextMultiReferenceLatentMethod = defineNode({
  key: "FluxKontextMultiReferenceLatentMethod",
  displayName: "Edit Model Reference Method",
  category: "advanced/conditioning/flux",
  description: "Sets how models that edit pictures place several reference latents; other models ignore it.",
  inputs: {
    conditioning: conditioning(),
    reference_latents_method: choice(["offset", "index", "uxo/uno", "index_timestep_zero"]),
  },
  outputs: { CONDITIONING: "CONDITIONING" },
  run: ({ conditioning, reference_latents_method: method }) => ({
    CONDITIONING: withOptions(conditioning, { reference_latents_method: method === "uxo/uno" ? "uxo" : method }),
  }),
});
