import { SAMPLERS, type Sampler } from "../tensor/sampling/sigmas.js";
import { choice } from "./inputs.js";

// decision 197
/** Samplers of ComfyUI's first graphs, which had a prefix there. */
const PREFIXED: readonly Sampler[] = [
  ...(["euler", "euler_ancestral", "heun", "dpm_2", "dpm_2_ancestral", "lms"] as const),
  ...(["dpm_fast", "dpm_adaptive", "dpmpp_2s_ancestral", "dpmpp_sde", "dpmpp_2m"] as const),
];
const RENAMED: ReadonlyMap<unknown, Sampler> = new Map(PREFIXED.map((name) => [`sample_${name}`, name]));

/** Input with the choice of samplers, under their old names too. */
export const samplerName = () => ({ ...choice(SAMPLERS), renamed: RENAMED });
