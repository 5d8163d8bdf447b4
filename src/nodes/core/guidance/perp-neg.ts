import { derivedModel } from "../../../host/derived-model.js";
import { perpendicular } from "../../../host/sampling/guiders/perp-neg.js";
import { defineNode } from "../../define.js";
import { conditioning, float, model } from "../../inputs.js";

export const perpNeg = defineNode({
  key: "PerpNeg",
  displayName: "Perp-Neg (DEPRECATED by PerpNegGuider)",
  category: "_for_testing",
  description: "Guides away from the part of the negative side that is perpendicular to the positive side.",
  deprecated: true,
  inputs: {
    model: model(),
    empty_conditioning: conditioning(),
    neg_scale: float({ default: 1, min: 0, max: 100, step: 0.01 }),
  },
  outputs: { MODEL: "MODEL" },
  run: ({ model, empty_conditioning: empty, neg_scale }) => ({
    MODEL: derivedModel(model, {
      guidance: (before) => ({
        ...before,
        combine: async ({ cond, uncond, cfg, predict }) =>
          perpendicular({ positive: cond, negative: uncond, empty: await predict(empty) }, cfg, neg_scale),
        conditioning: [...(before?.conditioning ?? []), empty],
      }),
    }),
  }),
});
