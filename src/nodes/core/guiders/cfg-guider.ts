import { defineNode } from "../../define.js";
import { conditioning, float, model } from "../../inputs.js";

/** Factor of guidance, in ComfyUI's limits. */
export const cfgFactor = () => float({ default: 8, min: 0, max: 100, step: 0.1 });

export const cfgGuider = defineNode({
  key: "CFGGuider",
  category: "sampling/custom_sampling/guiders",
  description: "Guides a model from the negative to the positive conditioning.",
  inputs: { model: model(), positive: conditioning(), negative: conditioning(), cfg: cfgFactor() },
  outputs: { GUIDER: "GUIDER" },
  run: (inputs) => ({ GUIDER: { kind: "cfg", ...inputs } }),
});
