import { withReferences } from "../../conditioning.js";
import { defineNode } from "../../define.js";
import { conditioning, latent } from "../../inputs.js";

export const referenceLatent = defineNode({
  key: "ReferenceLatent",
  category: "advanced/conditioning/edit_models",
  description: "Adds a latent for models that edit pictures to look at; other models ignore it.",
  inputs: { conditioning: conditioning(), latent: latent({ optional: true }) },
  outputs: { CONDITIONING: "CONDITIONING" },
  run: ({ conditioning, latent }) => ({
    CONDITIONING: latent === undefined ? conditioning : withReferences(conditioning, [latent.samples]),
  }),
});
