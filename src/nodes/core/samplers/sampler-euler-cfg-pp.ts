import { describe, inputError } from "../../../base/errors.js";
import { defineNode } from "../../define.js";
import { choice } from "../../inputs.js";
import { sampling } from "./options.js";

const KEY = "SamplerEulerCFGpp";
/** The other version is ComfyUI's own experiment, of which no description is published. */
const EXPECTED = "regular, the one version that latentkit has";

export const samplerEulerCfgPp = defineNode({
  key: KEY,
  displayName: "SamplerEulerCFG++",
  category: "sampling/custom_sampling/samplers",
  description: "Euler steps of CFG++.",
  inputs: { version: choice(["regular", "alternative"], { default: "regular" }) },
  outputs: { SAMPLER: "SAMPLER" },
  validate: ({ version }) =>
    typeof version === "string" && version !== "regular"
      ? { version: `expected ${EXPECTED}, received ${describe(version)}` }
      : true,
  run: ({ version }) => {
    if (version !== "regular") throw inputError("input.invalid", { node: KEY, input: "version" }, EXPECTED, version);
    return sampling("euler_cfg_pp", {});
  },
});
