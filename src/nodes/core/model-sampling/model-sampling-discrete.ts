import type { Model } from "../../../host/types.js";
import { distilledSampling } from "../../../tensor/sampling/distilled-sampling.js";
import { type ModelSampling, specOf } from "../../../tensor/sampling/model-sampling.js";
import { defineNode } from "../../define.js";
import { boolean, choice, model } from "../../inputs.js";
import { reread, samplingFor } from "./resample.js";

/** Readings of a network by the names of this node. */
const READINGS = { eps: "eps", v_prediction: "v", lcm: "lcm", x0: "x0" } as const;

export const modelSamplingDiscrete = defineNode({
  key: "ModelSamplingDiscrete",
  category: "advanced/model",
  description: "Sets the prediction type of a model, on the noise schedule of Stable Diffusion.",
  inputs: {
    model: model(),
    sampling: choice(["eps", "v_prediction", "lcm", "x0"]),
    zsnr: boolean({ default: false, tooltip: "Zero terminal SNR: at the highest noise level no signal is left." }),
  },
  outputs: { MODEL: "MODEL" },
  run: ({ model, sampling, zsnr }, { host }) => {
    const patch = { node: "ModelSamplingDiscrete", inputs: { sampling, zsnr } };
    return { MODEL: reread(model, tableOf(model, sampling, zsnr), READINGS[sampling], patch, host) };
  },
});

/** The table of the model's family where it has one of this kind, else that of Stable Diffusion. */
function tableOf(model: Model, sampling: keyof typeof READINGS, zsnr: boolean): ModelSampling {
  const spec = specOf(model.sampling);
  const betas = spec?.kind === "discrete" ? { linearStart: spec.linearStart, linearEnd: spec.linearEnd } : {};
  const table = samplingFor(model, sampling === "v_prediction" ? "sd21-v" : "sd15", { ...betas, zsnr });
  return sampling === "lcm" ? distilledSampling(table) : table;
}
