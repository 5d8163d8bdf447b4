import { defineNode } from "../define.js";
import { choice, conditioning, float, model } from "../inputs.js";

/** Factor of guidance, in ComfyUI's limits. */
export const cfgFactor = () => float({ default: 8, min: 0, max: 100, step: 0.1 });

export const guiderNodes = [
  defineNode({
    key: "BasicGuider",
    category: "sampling/custom_sampling/guiders",
    description: "A model with one conditioning, without guidance.",
    inputs: { model: model(), conditioning: conditioning() },
    outputs: { GUIDER: "GUIDER" },
    run: ({ model, conditioning }) => ({ GUIDER: { kind: "basic", model, positive: conditioning } }),
  }),
  defineNode({
    key: "CFGGuider",
    category: "sampling/custom_sampling/guiders",
    description: "Guides a model from the negative to the positive conditioning.",
    inputs: { model: model(), positive: conditioning(), negative: conditioning(), cfg: cfgFactor() },
    outputs: { GUIDER: "GUIDER" },
    run: (inputs) => ({ GUIDER: { kind: "cfg", ...inputs } }),
  }),
  defineNode({
    key: "DualCFGGuider",
    category: "sampling/custom_sampling/guiders",
    description: "Guides a model from the negative conditioning to a second one, and from that to the first.",
    inputs: {
      model: model(),
      cond1: conditioning(),
      cond2: conditioning(),
      negative: conditioning(),
      cfg_conds: cfgFactor(),
      cfg_cond2_negative: cfgFactor(),
      style: choice(["regular", "nested"]),
    },
    outputs: { GUIDER: "GUIDER" },
    run: ({ cfg_conds, cfg_cond2_negative, ...inputs }) => ({
      GUIDER: { kind: "dual-cfg", ...inputs, cfgConds: cfg_conds, cfgCond2Negative: cfg_cond2_negative },
    }),
  }),
  defineNode({
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
  }),
] as const;
