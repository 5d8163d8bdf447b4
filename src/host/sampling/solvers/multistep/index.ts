import type { Sampler } from "../../../../tensor/sampling/sigmas.js";
import type { Solver } from "../../solver.js";
import { deis } from "./deis.js";
import { dpmpp2m, dpmpp2mCfgPp } from "./dpmpp-2m.js";
import { dpmpp2mSde, dpmpp2mSdeHeun, dpmpp3mSde } from "./dpmpp-sde.js";
import { erSde } from "./er-sde.js";
import { gradientEstimation, gradientEstimationCfgPp } from "./gradient-estimation.js";
import { cfgppUd10Ab, ipndm, ipndmV, lms } from "./linear-multistep.js";
import { resMultistep, resMultistepAncestral, resMultistepAncestralCfgPp, resMultistepCfgPp } from "./res-multistep.js";
import { saSolver, saSolverPece } from "./sa-solver.js";
import { uniPc, uniPcBh2 } from "./uni-pc.js";

/** Solvers that use the estimates of earlier steps, by sampler name. */
export const MULTISTEP: Partial<Record<Sampler, Solver>> = {
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
