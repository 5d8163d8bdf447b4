import { derivedModel } from "../../../host/derived-model.js";
import { weightedSum } from "../../../tensor/ops.js";
import type { ModelSampling } from "../../../tensor/sampling/model-sampling.js";
import { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { float, model } from "../../inputs.js";

export const differentialDiffusion = defineNode({
  key: "DifferentialDiffusion",
  displayName: "Differential Diffusion",
  category: "_for_testing",
  description: "Reads a grey noise mask as the share of steps in which each cell may change.",
  inputs: { model: model(), strength: float({ optional: true, default: 1, min: 0, max: 1, step: 0.01 }) },
  outputs: { MODEL: "MODEL" },
  run: ({ model, strength }) => ({
    MODEL: derivedModel(model, {
      guidance: (before, sampling) => ({
        ...before,
        mask: (mask, sigma, sigmas) => {
          const isOpen = atLeast(mask, remaining(sampling, sigma, sigmas));
          return strength === 1
            ? isOpen
            : weightedSum([
                [strength, isOpen],
                [1 - strength, mask],
              ]);
        },
      }),
    }),
  }),
});

/** Share of the schedule, in timesteps, that is left at a noise level. Levin and Fried 2023, "Differential Diffusion". */
function remaining(sampling: ModelSampling, sigma: number, sigmas: Float32Array): number {
  const lowest = Math.max(sampling.sigmaMin, sigmas.at(-1)!);
  const [from, to] = [sampling.timestep(sigmas[0]!), sampling.timestep(lowest)];
  if (from === to) return 1;
  return sigma <= lowest ? 0 : (sampling.timestep(sigma) - to) / (from - to);
}

/** 1 where the mask is at least the threshold, else 0. */
function atLeast(mask: Tensor, threshold: number): Tensor {
  const out = Tensor.unfilled(mask.shape);
  const [from, into] = [mask.data, out.data];
  for (let i = 0; i < into.length; i++) into[i] = from[i]! >= threshold ? 1 : 0;
  return out;
}
