import { describe, inputError } from "../../base/errors.js";
import type { SamplerChoice } from "../../host/sampling/solver.js";
import { pow } from "../../native/elementary.js";
import { percentToSigma } from "../../tensor/sampling/noise-level.js";
import { SAMPLERS, type Sampler } from "../../tensor/sampling/sigmas.js";
import { defineNode } from "../define.js";
import { boolean, choice, conditioning, float, int, model } from "../inputs.js";

// decisions: A misspelt name is an error
/** Samplers of ComfyUI's first graphs, which had a prefix there. */
const PREFIXED: readonly Sampler[] = [
  ...(["euler", "euler_ancestral", "heun", "dpm_2", "dpm_2_ancestral", "lms"] as const),
  ...(["dpm_fast", "dpm_adaptive", "dpmpp_2s_ancestral", "dpmpp_sde", "dpmpp_2m"] as const),
];

const RENAMED: ReadonlyMap<unknown, Sampler> = new Map(PREFIXED.map((name) => [`sample_${name}`, name]));

/** Input with the choice of samplers, under their old names too. */
export const samplerName = () => ({ ...choice(SAMPLERS), renamed: RENAMED });

/** Share of the noise of an ancestral or SDE step, and the factor of its noise. */
const amount = (value = 1, more: { tooltip?: string } = {}) =>
  float({ default: value, min: 0, max: 100, step: 0.01, round: false, ...more });

// decisions: The choice of a noise device is accepted and ignored
/** The device whose stream the reference draws from; here always the CPU's. */
const noiseDevice = () =>
  choice(["gpu", "cpu"], { tooltip: "Accepted for graphs of ComfyUI; either way the noise is the CPU's stream." });

export const samplerNodes = [
  defineNode({
    key: "KSamplerSelect",
    category: "sampling/custom_sampling/samplers",
    description: "A sampler by name, with its default options.",
    inputs: { sampler_name: samplerName() },
    outputs: { SAMPLER: "SAMPLER" },
    run: ({ sampler_name }) => ({ SAMPLER: { sampler: sampler_name, options: {} } }),
  }),
  defineNode({
    key: "SamplerEulerAncestral",
    category: "sampling/custom_sampling/samplers",
    description: "Euler steps that add fresh noise.",
    inputs: { eta: amount(), s_noise: amount() },
    outputs: { SAMPLER: "SAMPLER" },
    run: ({ eta, s_noise }) => sampling("euler_ancestral", { eta, s_noise }),
  }),
  defineNode({
    key: "SamplerEulerAncestralCFGPP",
    category: "sampling/custom_sampling/samplers",
    description: "Euler steps of CFG++ that add fresh noise.",
    inputs: {
      eta: float({ default: 1, min: 0, max: 1, step: 0.01, round: false }),
      s_noise: float({ default: 1, min: 0, max: 10, step: 0.01, round: false }),
    },
    outputs: { SAMPLER: "SAMPLER" },
    run: ({ eta, s_noise }) => sampling("euler_ancestral_cfg_pp", { eta, s_noise }),
  }),
  defineNode({
    key: "SamplerDPMPP_2S_Ancestral",
    category: "sampling/custom_sampling/samplers",
    description: "Second-order DPM-Solver++ in two stages, with fresh noise.",
    inputs: { eta: amount(), s_noise: amount() },
    outputs: { SAMPLER: "SAMPLER" },
    run: ({ eta, s_noise }) => sampling("dpmpp_2s_ancestral", { eta, s_noise }),
  }),
  defineNode({
    key: "SamplerDPMPP_SDE",
    category: "sampling/custom_sampling/samplers",
    description: "Stochastic DPM-Solver++ in two stages, with Brownian noise.",
    inputs: { eta: amount(), s_noise: amount(), r: amount(0.5), noise_device: noiseDevice() },
    outputs: { SAMPLER: "SAMPLER" },
    run: ({ eta, s_noise, r }) => sampling("dpmpp_sde", { eta, s_noise, r }),
  }),
  defineNode({
    key: "SamplerDPMPP_3M_SDE",
    category: "sampling/custom_sampling/samplers",
    description: "Stochastic third-order DPM-Solver++ (multistep), with Brownian noise.",
    inputs: { eta: amount(), s_noise: amount(), noise_device: noiseDevice() },
    outputs: { SAMPLER: "SAMPLER" },
    run: ({ eta, s_noise }) => sampling("dpmpp_3m_sde", { eta, s_noise }),
  }),
  defineNode({
    key: "SamplerDPMPP_2M_SDE",
    category: "sampling/custom_sampling/samplers",
    description: "Stochastic second-order DPM-Solver++ (multistep), with Brownian noise.",
    inputs: {
      solver_type: choice(["midpoint", "heun"]),
      eta: amount(),
      s_noise: amount(),
      noise_device: noiseDevice(),
    },
    outputs: { SAMPLER: "SAMPLER" },
    run: ({ solver_type, eta, s_noise }) => sampling("dpmpp_2m_sde", { solver_type, eta, s_noise }),
  }),
  defineNode({
    key: "SamplerLMS",
    category: "sampling/custom_sampling/samplers",
    description: "Linear multistep method of at most this order.",
    inputs: { order: int({ default: 4, min: 1, max: 100 }) },
    outputs: { SAMPLER: "SAMPLER" },
    run: ({ order }) => sampling("lms", { order }),
  }),
  defineNode({
    key: "SamplerDPMAdaptative",
    category: "sampling/custom_sampling/samplers",
    description: "DPM-Solver with a step size controlled by its estimated error.",
    inputs: {
      order: int({ default: 3, min: 2, max: 3 }),
      rtol: amount(0.05),
      atol: amount(0.0078),
      h_init: amount(0.05),
      pcoeff: amount(0),
      icoeff: amount(1),
      dcoeff: amount(0),
      accept_safety: amount(0.81),
      eta: amount(0),
      s_noise: amount(),
    },
    outputs: { SAMPLER: "SAMPLER" },
    run: (options) => sampling("dpm_adaptive", options),
  }),
  defineNode({
    key: "SamplerER_SDE",
    category: "sampling/custom_sampling/samplers",
    description: "Extended reverse-time SDE solver; solver_type selects its noise.",
    inputs: {
      solver_type: choice(["ER-SDE", "Reverse-time SDE", "ODE"]),
      max_stage: int({ default: 3, min: 1, max: 3 }),
      eta: amount(1, { tooltip: "Used by Reverse-time SDE only; 0 makes it the ODE." }),
      s_noise: amount(),
    },
    outputs: { SAMPLER: "SAMPLER" },
    run: ({ solver_type, max_stage, eta, s_noise }) => {
      const power = solver_type === "ODE" ? 1 : eta + 1;
      const options = {
        s_noise: solver_type !== "ER-SDE" && power === 1 ? 0 : s_noise,
        noise_scaler: solver_type === "ER-SDE" ? null : (sigma: number) => pow(sigma, power),
        max_stage,
      };
      return sampling("er_sde", options);
    },
  }),
  defineNode({
    key: "SamplerSASolver",
    category: "sampling/custom_sampling/samplers",
    description: "Stochastic Adams solver, with noise in a range of the schedule.",
    inputs: {
      model: model(),
      eta: float({ default: 1, min: 0, max: 10, step: 0.01, round: false }),
      sde_start_percent: float({ default: 0.2, min: 0, max: 1, step: 0.001 }),
      sde_end_percent: float({ default: 0.8, min: 0, max: 1, step: 0.001 }),
      s_noise: amount(),
      predictor_order: int({ default: 3, min: 1, max: 6 }),
      corrector_order: int({ default: 4, min: 0, max: 6 }),
      use_pece: boolean(),
      simple_order_2: boolean(),
    },
    outputs: { SAMPLER: "SAMPLER" },
    run: ({ model, eta, sde_start_percent, sde_end_percent, ...options }) => {
      const start = percentToSigma(model.sampling, sde_start_percent);
      const end = percentToSigma(model.sampling, sde_end_percent);
      const tau_func = (sigma: number): number => (start >= sigma && sigma >= end ? eta : 0);
      return sampling("sa_solver", { ...options, tau_func });
    },
  }),
  defineNode({
    key: "SamplerSEEDS2",
    category: "sampling/custom_sampling/samplers",
    description: "Stochastic exponential solver SEEDS in two stages.",
    inputs: {
      solver_type: choice(["phi_1", "phi_2"]),
      eta: amount(),
      s_noise: amount(),
      r: float({ default: 0.5, min: 0.01, max: 1, step: 0.01, round: false }),
    },
    outputs: { SAMPLER: "SAMPLER" },
    run: ({ solver_type, eta, s_noise, r }) => sampling("seeds_2", { solver_type, eta, s_noise, r }),
  }),
  defineNode({
    key: "SamplerEulerCFGpp",
    displayName: "SamplerEulerCFG++",
    category: "sampling/custom_sampling/samplers",
    description: "Euler steps of CFG++.",
    inputs: { version: choice(["regular", "alternative"], { default: "regular" }) },
    outputs: { SAMPLER: "SAMPLER" },
    validate: ({ version }) =>
      typeof version === "string" && version !== "regular"
        ? { version: `expected ${REGULAR}, received ${describe(version)}` }
        : true,
    run: ({ version }) => {
      if (version !== "regular")
        throw inputError("input.invalid", { node: "SamplerEulerCFGpp", input: "version" }, REGULAR, version);
      return sampling("euler_cfg_pp", {});
    },
  }),
] as const;

/** Output of a node that chooses a sampler. */
const sampling = (sampler: SamplerChoice["sampler"], options: SamplerChoice["options"]) => ({
  SAMPLER: { sampler, options } satisfies SamplerChoice,
});

/** The other version is ComfyUI's own experiment; its description is not published. */
const REGULAR = "regular (latentkit has no other version)";

/** Factor of guidance, in ComfyUI's limits. */
export const cfgFactor = () => float({ default: 8, min: 0, max: 100, step: 0.1 });

export const guiderNodes = [
  defineNode({
    key: "BasicGuider",
    category: "sampling/custom_sampling/guiders",
    description: "A model with one conditioning, without guidance.",
    inputs: { model: model(), conditioning: conditioning() },
    outputs: { GUIDER: "GUIDER" },
    run: ({ model, conditioning }) => ({ GUIDER: { kind: "basic", model, positive: conditioning } }),
  }),
  defineNode({
    key: "CFGGuider",
    category: "sampling/custom_sampling/guiders",
    description: "Guides a model from the negative to the positive conditioning.",
    inputs: { model: model(), positive: conditioning(), negative: conditioning(), cfg: cfgFactor() },
    outputs: { GUIDER: "GUIDER" },
    run: (inputs) => ({ GUIDER: { kind: "cfg", ...inputs } }),
  }),
  defineNode({
    key: "DualCFGGuider",
    category: "sampling/custom_sampling/guiders",
    description: "Guides a model from the negative conditioning to a second one, and from that to the first.",
    inputs: {
      model: model(),
      cond1: conditioning(),
      cond2: conditioning(),
      negative: conditioning(),
      cfg_conds: cfgFactor(),
      cfg_cond2_negative: cfgFactor(),
      style: choice(["regular", "nested"]),
    },
    outputs: { GUIDER: "GUIDER" },
    run: ({ cfg_conds, cfg_cond2_negative, ...inputs }) => ({
      GUIDER: { kind: "dual-cfg", ...inputs, cfgConds: cfg_conds, cfgCond2Negative: cfg_cond2_negative },
    }),
  }),
  defineNode({
    key: "PerpNegGuider",
    category: "_for_testing",
    description: "Guides a model away from the part of the negative conditioning that the positive one does not share.",
    inputs: {
      model: model(),
      positive: conditioning(),
      negative: conditioning(),
      empty_conditioning: conditioning(),
      cfg: cfgFactor(),
      neg_scale: float({ default: 1, min: 0, max: 100, step: 0.01 }),
    },
    outputs: { GUIDER: "GUIDER" },
    run: ({ empty_conditioning, neg_scale, ...inputs }) => ({
      GUIDER: { kind: "perp-neg", ...inputs, empty: empty_conditioning, negScale: neg_scale },
    }),
  }),
] as const;
