import { defineNode } from "../../define.js";
import { choice, conditioning, model } from "../../inputs.js";
import { cfgFactor } from "./cfg-guider.js";

export const dualCfgGuider = defineNode({
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
});
