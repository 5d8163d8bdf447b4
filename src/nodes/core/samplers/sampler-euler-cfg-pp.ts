import { inputError } from "../../../base/errors.js";
import { defineNode } from "../../define.js";
import { choice } from "../../inputs.js";
import { sampling } from "./options.js";

const KEY = "SamplerEulerCFGpp";

export const samplerEulerCfgPp = defineNode({
  key: KEY,
  displayName: "SamplerEulerCFG++",
  category: "sampling/custom_sampling/samplers",
  description: "Euler steps of CFG++.",
  inputs: { version: choice(["regular", "alternative"], { default: "regular" }) },
  outputs: { SAMPLER: "SAMPLER" },
  run: ({ version }) => {
    // ComfyUI's own experiment, of which no description is published
    if (version !== "regular") throw inputError("input.invalid", { node: KEY, input: "version" }, "regular", version);
    return sampling("euler_cfg_pp", {});
  },
});
