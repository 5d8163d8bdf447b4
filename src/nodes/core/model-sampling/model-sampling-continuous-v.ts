import type { Model } from "../../../host/types.js";
import { atan, tan } from "../../../native/elementary.js";
import type { ModelSampling } from "../../../tensor/sampling/model-sampling.js";
import { defineNode } from "../../define.js";
import { choice, float, model } from "../../inputs.js";
import { reread, samplingFor } from "./resample.js";

export const modelSamplingContinuousV = defineNode({
  key: "ModelSamplingContinuousV",
  category: "advanced/model",
  description: "Sets a model to v prediction in continuous time.",
  inputs: {
    model: model(),
    sampling: choice(["v_prediction"]),
    sigma_max: float({ default: 500, min: 0, max: 1000, step: 0.001 }),
    sigma_min: float({ default: 0.03, min: 0, max: 1000, step: 0.001 }),
  },
  outputs: { MODEL: "MODEL" },
  run: ({ model, ...inputs }, { host }) => {
    const patch = { node: "ModelSamplingContinuousV", inputs };
    const sampling = continuousV(model, inputs.sigma_max, inputs.sigma_min);
    return { MODEL: reread(model, sampling, "v in continuous time", patch, host) };
  },
});

/** Levels in equal steps of their logarithm; time is the angle between signal and noise, from 0 to 1. */
function continuousV(model: Model, sigmaMax: number, sigmaMin: number): ModelSampling {
  const { name, sigmas, latentFormat } = samplingFor(model, "svd", { sigmaMax, sigmaMin });
  return Object.freeze({
    name,
    prediction: "v",
    sigmas,
    sigmaMin: sigmas[0]!,
    sigmaMax: sigmas[sigmas.length - 1]!,
    timestep: (sigma: number) => Math.fround(atan(sigma) / (Math.PI / 2)),
    sigma: (timestep: number) => Math.fround(tan((timestep * Math.PI) / 2)),
    latentFormat,
  });
}
