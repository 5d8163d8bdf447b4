import { describe, LatentkitError, notOneOf } from "../../../base/errors.js";
import { suggest } from "../../../base/suggest.js";
import { SAMPLERS, type Sampler } from "../../../tensor/sampling/sigmas.js";
import type { SamplerChoice, Solver } from "../solver.js";
import { dpm2, dpm2Ancestral, dpmAdaptive, dpmFast } from "./dpm-solver.js";
import {
  dpmpp2m,
  dpmpp2mCfgPp,
  dpmpp2mSde,
  dpmpp2mSdeHeun,
  dpmpp2sAncestral,
  dpmpp2sAncestralCfgPp,
  dpmpp3mSde,
  dpmppSde,
} from "./dpmpp.js";
import { ddpm, euler, eulerAncestral, eulerAncestralCfgPp, eulerCfgPp, heun, heunpp2, lcm } from "./euler.js";
import {
  resMultistep,
  resMultistepAncestral,
  resMultistepAncestralCfgPp,
  resMultistepCfgPp,
  uniPc,
  uniPcBh2,
} from "./exponential-multistep.js";
import {
  cfgppUd10Ab,
  deis,
  gradientEstimation,
  gradientEstimationCfgPp,
  ipndm,
  ipndmV,
  lms,
} from "./linear-multistep.js";
import { expHeun2X0, expHeun2X0Sde, seeds2, seeds3 } from "./seeds.js";
import { erSde, saSolver, saSolverPece } from "./stochastic-multistep.js";

/** The solver of each sampler's name. @internal */
export const SOLVERS: Readonly<Record<Sampler, Solver>> = {
  euler,
  euler_cfg_pp: eulerCfgPp,
  euler_ancestral: eulerAncestral,
  euler_ancestral_cfg_pp: eulerAncestralCfgPp,
  heun,
  heunpp2,
  exp_heun_2_x0: expHeun2X0,
  exp_heun_2_x0_sde: expHeun2X0Sde,
  dpm_2: dpm2,
  dpm_2_ancestral: dpm2Ancestral,
  dpm_fast: dpmFast,
  dpm_adaptive: dpmAdaptive,
  dpmpp_2s_ancestral: dpmpp2sAncestral,
  dpmpp_2s_ancestral_cfg_pp: dpmpp2sAncestralCfgPp,
  dpmpp_sde: dpmppSde,
  dpmpp_sde_gpu: dpmppSde,
  ddpm,
  lcm,
  ddim: euler,
  seeds_2: seeds2,
  seeds_3: seeds3,
  lms,
  dpmpp_2m: dpmpp2m,
  dpmpp_2m_cfg_pp: dpmpp2mCfgPp,
  dpmpp_2m_sde: dpmpp2mSde,
  dpmpp_2m_sde_gpu: dpmpp2mSde,
  dpmpp_2m_sde_heun: dpmpp2mSdeHeun,
  dpmpp_2m_sde_heun_gpu: dpmpp2mSdeHeun,
  dpmpp_3m_sde: dpmpp3mSde,
  dpmpp_3m_sde_gpu: dpmpp3mSde,
  ipndm,
  ipndm_v: ipndmV,
  deis,
  cfgpp_ud10_ab: cfgppUd10Ab,
  res_multistep: resMultistep,
  res_multistep_cfg_pp: resMultistepCfgPp,
  res_multistep_ancestral: resMultistepAncestral,
  res_multistep_ancestral_cfg_pp: resMultistepAncestralCfgPp,
  gradient_estimation: gradientEstimation,
  gradient_estimation_cfg_pp: gradientEstimationCfgPp,
  er_sde: erSde,
  sa_solver: saSolver,
  sa_solver_pece: saSolverPece,
  uni_pc: uniPc,
  uni_pc_bh2: uniPcBh2,
};

/** A solver with all its options, ready to run. */
export interface ChosenSolver {
  readonly solver: Solver;
  readonly options: object;
  /** Whether ancestral noise has the run's seed itself, in place of seed + 1. */
  readonly sameSeed: boolean;
}

/**
 * The solver of a choice, with the defaults of the options that it leaves out. `ancestral_seed` is an option of every
 * sampler: "next", or "same" for the noise of older versions of ComfyUI. Fails with value.invalid.
 */
export function chosenSolver({ sampler, options }: SamplerChoice): ChosenSolver {
  const solver = Object.hasOwn(SOLVERS, sampler) ? SOLVERS[sampler] : undefined;
  if (solver === undefined) throw notOneOf("sampler", SAMPLERS, sampler);
  const { ancestral_seed = "next", ...own } = options;
  if (ancestral_seed !== "next" && ancestral_seed !== "same")
    throw notOneOf(`sampler ${sampler}, ancestral_seed`, ["next", "same"], ancestral_seed);
  const defaults: Readonly<Record<string, unknown>> = { ...solver.options };
  for (const [name, value] of Object.entries(own)) {
    if (!Object.hasOwn(defaults, name)) throw noOption(sampler, name, Object.keys(defaults));
    if (value === undefined || fits(value, defaults[name])) continue;
    const expected = defaults[name] === null ? "a function" : `a ${typeof defaults[name]}`;
    const message = `sampler ${sampler}, ${name}: expected ${expected}, received ${describe(value)}.`;
    throw new LatentkitError("value.invalid", message);
  }
  const set = Object.entries(own).filter(([, value]) => value !== undefined);
  return {
    solver,
    options: { ...defaults, ...Object.fromEntries(set) },
    sameSeed: ancestral_seed === "same",
  };
}

/** Whether a value has the type of a default: null stands for a function, and an option without one takes any. */
function fits(value: unknown, standard: unknown): boolean {
  if (standard === null) return value === null || typeof value === "function";
  return standard === undefined || (typeof value === typeof standard && !Number.isNaN(value));
}

function noOption(sampler: string, name: string, names: readonly string[]): LatentkitError {
  const { suggestion, hint } = suggest(name, names);
  const has = names.length === 0 ? "none" : names.join(", ");
  const message = `sampler ${sampler} has no option ${describe(name)}; it has ${has}.${hint}`;
  return new LatentkitError("value.invalid", message, { suggestion });
}
