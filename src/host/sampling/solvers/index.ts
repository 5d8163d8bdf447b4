import type { Sampler } from "../../../tensor/sampling/sigmas.js";
import type { Solver } from "../solver.js";
import { MULTISTEP } from "./multistep/index.js";
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
export const SOLVERS: Partial<Record<Sampler, Solver>> = {
  // single-step
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
  ...MULTISTEP,
};
