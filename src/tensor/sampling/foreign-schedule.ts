import { types } from "node:util";
import { describe, LatentkitError } from "../../base/errors.js";
import { loadNative } from "../../native/load.js";
import { linspace } from "./linspace.js";
import { DEFAULT_SPEC, type ModelSampling } from "./model-sampling.js";

interface Schedule {
  scheduler: string;
  steps: number;
  denoise: number;
  extraStep: boolean;
}

/** Schedule of a sampling that modelSampling() did not make, by its own table and its own maps. */
export function foreignSchedule(model: ModelSampling, schedule: Schedule): Float32Array {
  const { scheduler, steps, denoise, extraStep } = schedule;
  if (!types.isFloat32Array(model?.sigmas) || model.sigmas.length < 2 || typeof model.sigma !== "function") {
    throw new LatentkitError(
      "value.invalid",
      `model: expected a model sampling with sigmas, timestep() and sigma(), received ${describe(model)}.`,
    );
  }
  if (scheduler !== "sgm_uniform" && scheduler !== "normal") {
    // these read only the table, never the parameters of a family
    return loadNative().schedule(DEFAULT_SPEC, model.sigmas, scheduler, steps, extraStep, denoise);
  }
  if (!(denoise > 0)) return new Float32Array(0);
  if (steps === 0) return new Float32Array(1);
  const scheduled = denoise > 0.9999 ? steps : Math.floor(steps / denoise);
  const all = uniformTimesteps(model, scheduler === "sgm_uniform", scheduled + (extraStep ? 1 : 0));
  if (extraStep && all.length > 1) all.splice(-2, 1);
  return Float32Array.from(all.slice(-(steps + 1)));
}

function uniformTimesteps(model: ModelSampling, dropLast: boolean, steps: number): number[] {
  const { sigmas } = model;
  const start = Math.fround(model.timestep(sigmas[sigmas.length - 1]!));
  const end = Math.fround(model.timestep(sigmas[0]!));
  // a last sigma of about 0 is the end itself: one step more, no 0 appended
  const endsInZero = !dropLast && Math.abs(model.sigma(end)) <= 1e-5;
  const count = dropLast || endsInZero ? steps + 1 : steps;
  const out = linspace(start, end, count).map((timestep) => model.sigma(timestep));
  if (dropLast) out.pop();
  if (!endsInZero) out.push(0);
  return out;
}
