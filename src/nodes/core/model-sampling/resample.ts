import { describe, LatentkitError } from "../../../base/errors.js";
import { derivedModel } from "../../../host/derived-model.js";
import type { Host, Model, ModelPatch } from "../../../host/types.js";
import {
  type ModelSampling,
  type ModelSamplingName,
  modelSampling,
  type SamplingOverrides,
} from "../../../tensor/sampling/model-sampling.js";
import { patchedModel } from "../../host-files.js";

/** The sampling of a family under the name and with the latents of a model. */
export const samplingFor = (
  { sampling: { name, latentFormat } }: Model,
  family: ModelSamplingName,
  overrides: SamplingOverrides,
): ModelSampling => Object.freeze({ ...modelSampling(family, overrides), name, latentFormat });

/**
 * The model with another sampling of the same kind. Where its network would get other timesteps, its host changes that as
 * well, if it can. Fails with host.missing for a model of another kind that its host cannot change.
 */
export function resampled(model: Model, sampling: ModelSampling, patch: ModelPatch, host: Host): Model {
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
export function reread(
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
