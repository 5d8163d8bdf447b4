import { types } from "node:util";
import { describe, LatentkitError, valueError } from "../../base/errors.js";
import { CHECKED_LATER, checkOptions, isObject, type OptionRules } from "../../base/options.js";
import { suggest } from "../../base/suggest.js";
import { loadNative } from "../../native/load.js";
import { DEFAULT_SPEC, type ModelSampling, type ModelSamplingName, modelSampling, specOf } from "./model-sampling.js";
import { linspace } from "./spaced-sigmas.js";

/** ComfyUI's samplers, in its order. */
export const SAMPLERS = Object.freeze([
  "euler",
  "euler_cfg_pp",
  "euler_ancestral",
  "euler_ancestral_cfg_pp",
  "heun",
  "heunpp2",
  "exp_heun_2_x0",
  "exp_heun_2_x0_sde",
  "dpm_2",
  "dpm_2_ancestral",
  "lms",
  "dpm_fast",
  "dpm_adaptive",
  "dpmpp_2s_ancestral",
  "dpmpp_2s_ancestral_cfg_pp",
  "dpmpp_sde",
  "dpmpp_sde_gpu",
  "dpmpp_2m",
  "dpmpp_2m_cfg_pp",
  "dpmpp_2m_sde",
  "dpmpp_2m_sde_gpu",
  "dpmpp_2m_sde_heun",
  "dpmpp_2m_sde_heun_gpu",
  "dpmpp_3m_sde",
  "dpmpp_3m_sde_gpu",
  "ddpm",
  "lcm",
  "ipndm",
  "ipndm_v",
  "deis",
  "cfgpp_ud10_ab",
  "res_multistep",
  "res_multistep_cfg_pp",
  "res_multistep_ancestral",
  "res_multistep_ancestral_cfg_pp",
  "gradient_estimation",
  "gradient_estimation_cfg_pp",
  "er_sde",
  "seeds_2",
  "seeds_3",
  "sa_solver",
  "sa_solver_pece",
  "ddim",
  "uni_pc",
  "uni_pc_bh2",
] as const);

/** ComfyUI's schedulers, in its order. */
export const SCHEDULERS = Object.freeze([
  "simple",
  "sgm_uniform",
  "karras",
  "exponential",
  "ddim_uniform",
  "beta",
  "normal",
  "linear_quadratic",
  "kl_optimal",
] as const);

/** Name of a sampler. */
export type Sampler = (typeof SAMPLERS)[number];
/** Name of a scheduler. */
export type Scheduler = (typeof SCHEDULERS)[number];

/** Samplers that schedule one more step and drop the last but one sigma. */
const EXTRA_STEP: ReadonlySet<string> = new Set(["dpm_2", "dpm_2_ancestral", "uni_pc", "uni_pc_bh2"]);

const MAX_STEPS = 10_000;
const MAX_SCHEDULED_STEPS = 1_000_000;

/** Options of `sigmas`. */
export interface ScheduleOptions {
  /** Sampling or family of the model. Default: "sd15". */
  model?: ModelSampling | ModelSamplingName;
  /** Sampler that the levels are for: some drop the last but one. Default: "euler". */
  sampler?: Sampler;
  /** One of `SCHEDULERS`. */
  scheduler: Scheduler;
  /** Number of steps, 0 … 10000; 0 gives the single sigma 0. */
  steps: number;
  /** Above 0.9999 all sigmas; above 0 the last steps + 1 of floor(steps / denoise); else none. */
  denoise?: number;
}

const SCHEDULE_RULES: OptionRules<ScheduleOptions> = {
  model: ["a model sampling or its name", (value) => typeof value === "string" || isObject(value)],
  sampler: CHECKED_LATER,
  scheduler: CHECKED_LATER,
  steps: CHECKED_LATER,
  denoise: CHECKED_LATER,
};

/**
 * Falling sigmas of a schedule; they end in 0 and may be fewer or more than steps + 1 for ddim_uniform and beta.
 * Fails with value.invalid (unknown names) and value.out-of-range.
 */
export function sigmas(options: ScheduleOptions): Float32Array {
  checkOptions("sigmas", options, SCHEDULE_RULES);
  const { sampler = "euler", scheduler, steps, denoise = 1 } = options;
  checkName("sampler", sampler, SAMPLERS);
  checkName("scheduler", scheduler, SCHEDULERS);
  const areSteps = Number.isInteger(steps) && steps >= 0 && steps <= MAX_STEPS;
  checkRange("steps", steps, areSteps, `a whole number from 0 to ${MAX_STEPS}`);
  checkRange("denoise", denoise, typeof denoise === "number" && denoise <= 1, "a number up to 1");
  const scheduled = denoise > 0 ? steps / denoise : 0;
  checkRange("denoise", denoise, scheduled <= MAX_SCHEDULED_STEPS, `steps / denoise at most ${MAX_SCHEDULED_STEPS}`);
  const model = typeof options.model === "object" ? options.model : modelSampling(options.model ?? "sd15");
  const extraStep = EXTRA_STEP.has(sampler);
  const spec = specOf(model);
  return spec === undefined
    ? foreignSchedule(model, { scheduler, steps, denoise, extraStep })
    : loadNative().schedule(spec, model.sigmas, scheduler, steps, extraStep, denoise);
}

function checkName(subject: string, name: unknown, names: readonly string[]): void {
  if (typeof name === "string" && names.includes(name)) return;
  const { suggestion, hint } = suggest(name, names);
  const message = `${subject}: expected one of ${names.join(", ")}, received ${describe(name)}.${hint}`;
  throw new LatentkitError("value.invalid", message, { suggestion });
}

function checkRange(subject: string, value: unknown, ok: boolean, expected: string): void {
  if (!ok) throw valueError("value.out-of-range", subject, expected, value);
}

interface Schedule {
  scheduler: string;
  steps: number;
  denoise: number;
  extraStep: boolean;
}

/** Schedule of a sampling that modelSampling() did not make, by its own table and its own maps. */
function foreignSchedule(model: ModelSampling, schedule: Schedule): Float32Array {
  const { scheduler, steps, denoise, extraStep } = schedule;
  if (!types.isFloat32Array(model?.sigmas) || model.sigmas.length < 2 || typeof model.sigma !== "function")
    throw valueError("value.invalid", "model", "a model sampling with sigmas, timestep() and sigma()", model);
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
