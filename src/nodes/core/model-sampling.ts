import { describe, LatentkitError } from "../../base/errors.js";
import { derivedModel } from "../../host/derived-model.js";
import type { Host } from "../../host/host.js";
import type { Model, ModelPatch } from "../../host/types.js";
import { atan, tan } from "../../native/elementary.js";
import { LATENT_FORMATS } from "../../tensor/sampling/latent-format.js";
import {
  distilledSampling,
  type ModelSampling,
  type ModelSamplingName,
  modelSampling,
  type SamplingOverrides,
  specOf,
} from "../../tensor/sampling/model-sampling.js";
import { defineNode } from "../define.js";
import { patchedModel } from "../host-files.js";
import { boolean, choice, float, int, model } from "../inputs.js";

export const modelSamplingNodes = [
  defineNode({
    key: "ModelSamplingDiscrete",
    category: "advanced/model",
    description: "Sets the prediction type of a model, on the noise schedule of Stable Diffusion.",
    inputs: {
      model: model(),
      sampling: choice(["eps", "v_prediction", "lcm", "x0"]),
      zsnr: boolean({ default: false, tooltip: "Zero terminal SNR: no signal is left at the highest noise level." }),
    },
    outputs: { MODEL: "MODEL" },
    run: ({ model, sampling, zsnr }, { host }) => {
      const patch = { node: "ModelSamplingDiscrete", inputs: { sampling, zsnr } };
      return { MODEL: reread(model, tableOf(model, sampling, zsnr), DISCRETE_READINGS[sampling], patch, host) };
    },
  }),
  defineNode({
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
      // the host of this flow sets its levels
      if (kind === "cosmos_rflow") return { MODEL: reread(model, undefined, kind, patch, host) };
      const table = samplingFor(model, kind === "v_prediction" ? "svd" : "playground25", { sigmaMax, sigmaMin });
      const prediction = CONTINUOUS_READINGS[kind];
      const { latentFormat } = kind === "edm_playground_v2.5" ? PLAYGROUND : table;
      return { MODEL: reread(model, Object.freeze({ ...table, prediction, latentFormat }), prediction, patch, host) };
    },
  }),
  defineNode({
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
  }),
  defineNode({
    key: "ModelSamplingSD3",
    category: "advanced/model",
    description: "Shifts the noise schedule of a flow model.",
    inputs: { model: model(), shift: float({ default: 3, min: 0, max: 100, step: 0.01 }) },
    outputs: { MODEL: "MODEL" },
    run: ({ model, shift }, { host }) => {
      const patch = { node: "ModelSamplingSD3", inputs: { shift } };
      return { MODEL: resampled(model, samplingFor(model, "sd3", { shift }), patch, host) };
    },
  }),
  defineNode({
    key: "ModelSamplingAuraFlow",
    category: "advanced/model",
    description: "Shifts the noise schedule of a flow model whose timesteps run from 0 to 1.",
    inputs: { model: model(), shift: float({ default: 1.73, min: 0, max: 100, step: 0.01 }) },
    outputs: { MODEL: "MODEL" },
    run: ({ model, shift }, { host }) => {
      const patch = { node: "ModelSamplingAuraFlow", inputs: { shift } };
      return { MODEL: resampled(model, samplingFor(model, "auraflow", { shift }), patch, host) };
    },
  }),
  defineNode({
    key: "ModelSamplingFlux",
    category: "advanced/model",
    description: "Shifts the noise schedule of a flow model by the size of the picture.",
    inputs: {
      model: model(),
      max_shift: float({ default: 1.15, min: 0, max: 100, step: 0.01 }),
      base_shift: float({ default: 0.5, min: 0, max: 100, step: 0.01 }),
      width: int({ default: 1024, min: 16, max: 16384, step: 8 }),
      height: int({ default: 1024, min: 16, max: 16384, step: 8 }),
    },
    outputs: { MODEL: "MODEL" },
    run: ({ model, ...inputs }, { host }) => {
      const { max_shift, base_shift, width, height } = inputs;
      const slope = (max_shift - base_shift) / (MANY_TOKENS - FEW_TOKENS);
      const shift = ((width * height) / PIXELS_OF_TOKEN) * slope + (base_shift - slope * FEW_TOKENS);
      const patch = { node: "ModelSamplingFlux", inputs };
      return { MODEL: resampled(model, samplingFor(model, "flux", { shift }), patch, host) };
    },
  }),
  defineNode({
    key: "ModelSamplingStableCascade",
    category: "advanced/model",
    description: "Shifts the noise schedule of a Stable Cascade model.",
    inputs: { model: model(), shift: float({ default: 2, min: 0, max: 100, step: 0.01 }) },
    outputs: { MODEL: "MODEL" },
    run: ({ model, shift }, { host }) => {
      const patch = { node: "ModelSamplingStableCascade", inputs: { shift } };
      return { MODEL: resampled(model, samplingFor(model, "cascade-c", { shift }), patch, host) };
    },
  }),
] as const;

/** The sampling of a family under the name and with the latents of a model. */
const samplingFor = (
  { sampling: { name, latentFormat } }: Model,
  family: ModelSamplingName,
  overrides: SamplingOverrides,
): ModelSampling => Object.freeze({ ...modelSampling(family, overrides), name, latentFormat });

/**
 * The model with another sampling of the same kind. If its network would get other timesteps, its host changes that as
 * well, if it can. Fails with host.missing for a model of another kind that its host cannot change.
 */
function resampled(model: Model, sampling: ModelSampling, patch: ModelPatch, host: Host): Model {
  const { sampling: before } = model;
  const isKind = sampling.prediction === before.prediction;
  if (isKind && (model.patch === undefined || hasTimestepsOf(before, sampling)))
    return derivedModel(model, { sampling });
  return reread(model, sampling, sampling.prediction, patch, host);
}

/**
 * The model with another sampling, whose network is read as `reading`. That is its host's work; without it, only the table
 * of a model that is read like that already can change. Fails with host.missing.
 */
function reread(
  model: Model,
  sampling: ModelSampling | undefined,
  reading: string,
  patch: ModelPatch,
  host: Host,
): Model {
  const { name, prediction } = model.sampling;
  if (model.patch === undefined && reading !== prediction) {
    const message = `host ${describe(host.name)}: model ${name} predicts ${prediction}; the host cannot read that as ${reading}.`;
    throw new LatentkitError("host.missing", message);
  }
  const changed = model.patch === undefined ? model : patchedModel(model, patch, host);
  return sampling === undefined ? changed : derivedModel(changed, { sampling });
}

/** Whether both samplings give a network the same timesteps. */
const hasTimestepsOf = (a: ModelSampling, b: ModelSampling): boolean =>
  [b.sigmaMin, b.sigmas[b.sigmas.length >> 1]!, b.sigmaMax].every((sigma) => a.timestep(sigma) === b.timestep(sigma));

/** Readings of a network by the names of this node. */
const DISCRETE_READINGS = { eps: "eps", v_prediction: "v", lcm: "lcm", x0: "x0" } as const;

/** The table of the model's family if it has one of this kind, else that of Stable Diffusion. */
function tableOf(model: Model, sampling: keyof typeof DISCRETE_READINGS, zsnr: boolean): ModelSampling {
  const spec = specOf(model.sampling);
  const betas = spec?.kind === "discrete" ? { linearStart: spec.linearStart, linearEnd: spec.linearEnd } : {};
  const table = samplingFor(model, sampling === "v_prediction" ? "sd21-v" : "sd15", { ...betas, zsnr });
  return sampling === "lcm" ? distilledSampling(table) : table;
}

const CONTINUOUS_READINGS = {
  v_prediction: "edm-v",
  edm: "edm",
  "edm_playground_v2.5": "edm",
  eps: "eps",
  cosmos_rflow: "cosmos_rflow",
} as const;

const PLAYGROUND = { latentFormat: LATENT_FORMATS.SDXL_Playground_2_5 };

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

/** Pixels that one token of the model covers. */
export const PIXELS_OF_TOKEN = 16 * 16;

/** Numbers of tokens that the two shifts belong to. */
const FEW_TOKENS = 256;

const MANY_TOKENS = 4096;
