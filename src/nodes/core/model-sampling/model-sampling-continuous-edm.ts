import { LATENT_FORMATS } from "../../../tensor/sampling/latent-format.js";
import { defineNode } from "../../define.js";
import { choice, float, model } from "../../inputs.js";
import { reread, samplingFor } from "./resample.js";

const READINGS = {
  v_prediction: "edm-v",
  edm: "edm",
  "edm_playground_v2.5": "edm",
  eps: "eps",
  cosmos_rflow: "cosmos_rflow",
} as const;

export const modelSamplingContinuousEdm = defineNode({
  key: "ModelSamplingContinuousEDM",
  category: "advanced/model",
  description: "Sets the prediction type of a model, with noise between two levels.",
  inputs: {
    model: model(),
    sampling: choice(["v_prediction", "edm", "edm_playground_v2.5", "eps", "cosmos_rflow"]),
    sigma_max: float({ default: 120, min: 0, max: 1000, step: 0.001 }),
    sigma_min: float({ default: 0.002, min: 0, max: 1000, step: 0.001 }),
  },
  outputs: { MODEL: "MODEL" },
  run: ({ model, ...inputs }, { host }) => {
    const { sampling: kind, sigma_max: sigmaMax, sigma_min: sigmaMin } = inputs;
    const patch = { node: "ModelSamplingContinuousEDM", inputs };
    // the levels of this flow are its host's own
    if (kind === "cosmos_rflow") return { MODEL: reread(model, undefined, kind, patch, host) };
    const table = samplingFor(model, kind === "v_prediction" ? "svd" : "playground25", { sigmaMax, sigmaMin });
    const prediction = READINGS[kind];
    const { latentFormat } = kind === "edm_playground_v2.5" ? PLAYGROUND : table;
    return { MODEL: reread(model, Object.freeze({ ...table, prediction, latentFormat }), prediction, patch, host) };
  },
});

const PLAYGROUND = { latentFormat: LATENT_FORMATS.SDXL_Playground_2_5 };
