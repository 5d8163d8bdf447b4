import type { Sampler } from "../../../tensor/sampling/sigmas.js";
import type { Solver } from "../solver.js";
import { deis } from "./multistep/deis.js";
import { dpmpp2m, dpmpp2mCfgPp } from "./multistep/dpmpp-2m.js";
import { dpmpp2mSde, dpmpp2mSdeHeun, dpmpp3mSde } from "./multistep/dpmpp-sde.js";
import { erSde } from "./multistep/er-sde.js";
import { gradientEstimation, gradientEstimationCfgPp } from "./multistep/gradient-estimation.js";
import { cfgppUd10Ab, ipndm, ipndmV, lms } from "./multistep/linear-multistep.js";
import {
  resMultistep,
  resMultistepAncestral,
  resMultistepAncestralCfgPp,
  resMultistepCfgPp,
} from "./multistep/res-multistep.js";
import { saSolver, saSolverPece } from "./multistep/sa-solver.js";
import { uniPc, uniPcBh2 } from "./multistep/uni-pc.js";
import { dpm2, dpm2Ancestral } from "./single-step/dpm-2.js";
import { dpmAdaptive } from "./single-step/dpm-adaptive.js";
import { dpmFast } from "./single-step/dpm-fast.js";
import { dpmpp2sAncestral, dpmpp2sAncestralCfgPp } from "./single-step/dpmpp-2s.js";
import { dpmppSde } from "./single-step/dpmpp-sde.js";
import { ddpm, euler, eulerAncestral, lcm } from "./single-step/euler.js";
import { eulerAncestralCfgPp, eulerCfgPp } from "./single-step/euler-cfg-pp.js";
import { heun, heunpp2 } from "./single-step/heun.js";
import { expHeun2X0, expHeun2X0Sde, seeds2, seeds3 } from "./single-step/seeds.js";

/** The solver of each sampler's name. */
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
