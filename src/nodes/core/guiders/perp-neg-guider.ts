import { defineNode } from "../../define.js";
import { conditioning, float, model } from "../../inputs.js";
import { cfgFactor } from "./cfg-guider.js";

export const perpNegGuider = defineNode({
  key: "PerpNegGuider",
  category: "_for_testing",
  description: "Guides a model away from the part of the negative conditioning that the positive one does not share.",
  inputs: {
    model: model(),
    positive: conditioning(),
    negative: conditioning(),
    empty_conditioning: conditioning(),
    cfg: cfgFactor(),
    neg_scale: float({ default: 1, min: 0, max: 100, step: 0.01 }),
  },
  outputs: { GUIDER: "GUIDER" },
  run: ({ empty_conditioning, neg_scale, ...inputs }) => ({
    GUIDER: { kind: "perp-neg", ...inputs, empty: empty_conditioning, negScale: neg_scale },
  }),
});
