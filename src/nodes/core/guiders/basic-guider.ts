import { defineNode } from "../../define.js";
import { conditioning, model } from "../../inputs.js";

export const basicGuider = defineNode({
  key: "BasicGuider",
  category: "sampling/custom_sampling/guiders",
  description: "A model with one conditioning, without guidance.",
  inputs: { model: model(), conditioning: conditioning() },
  outputs: { GUIDER: "GUIDER" },
  run: ({ model, conditioning }) => ({ GUIDER: { kind: "basic", model, positive: conditioning } }),
});
