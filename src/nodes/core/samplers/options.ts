import type { SamplerChoice } from "../../../host/sampling/solver.js";
import { choice, float } from "../../inputs.js";

/** Output of a node that chooses a sampler. */
export const sampling = (sampler: SamplerChoice["sampler"], options: SamplerChoice["options"]) => ({
  SAMPLER: { sampler, options } satisfies SamplerChoice,
});

/** Share of the noise of an ancestral or SDE step, and the factor of its noise. */
export const amount = (value = 1) => float({ default: value, min: 0, max: 100, step: 0.01, round: false });

// decision 204
/** The device whose stream the reference draws from; here it is the CPU's for either. */
export const noiseDevice = () =>
  choice(["gpu", "cpu"], { tooltip: "Accepted for graphs of ComfyUI; the noise is the CPU's stream either way." });
