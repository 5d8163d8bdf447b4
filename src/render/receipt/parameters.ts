import { packageVersion } from "../../base/package.js";
import { settingsOf } from "./settings.js";

// decision 241
type Prompt = Readonly<Record<string, unknown>>;

/** Names of samplers and schedulers as A1111 spells them; others stay as they are. */
const SAMPLERS: Readonly<Record<string, string>> = {
  euler: "Euler",
  euler_ancestral: "Euler a",
  heun: "Heun",
  dpm_2: "DPM2",
  dpm_2_ancestral: "DPM2 a",
  lms: "LMS",
  dpm_fast: "DPM fast",
  dpm_adaptive: "DPM adaptive",
  dpmpp_2s_ancestral: "DPM++ 2S a",
  dpmpp_sde: "DPM++ SDE",
  dpmpp_sde_gpu: "DPM++ SDE",
  dpmpp_2m: "DPM++ 2M",
  dpmpp_2m_sde: "DPM++ 2M SDE",
  dpmpp_2m_sde_gpu: "DPM++ 2M SDE",
  dpmpp_3m_sde: "DPM++ 3M SDE",
  dpmpp_3m_sde_gpu: "DPM++ 3M SDE",
  ddim: "DDIM",
  uni_pc: "UniPC",
  lcm: "LCM",
};
const SCHEDULERS: Readonly<Record<string, string>> = {
  normal: "Normal",
  karras: "Karras",
  exponential: "Exponential",
  sgm_uniform: "SGM Uniform",
  simple: "Simple",
  ddim_uniform: "DDIM",
  beta: "Beta",
  kl_optimal: "KL Optimal",
};

/** Hashes of model files by kind and name, as receipts have them. */
type Models = Readonly<Record<string, string>>;

/**
 * The settings of a picture in the lines that A1111 writes and prompt readers know: of the first sampler above the node
 * that saves it. Undefined where no sampler is there.
 */
export function parametersOf(
  prompt: Prompt,
  nodeId: string,
  { width, height }: { readonly width: number; readonly height: number },
  models: Models = {},
): string | undefined {
  const settings = settingsOf(prompt, nodeId);
  if (settings === undefined) return undefined;
  const { positive, negative, steps, sampler, scheduler, cfg, seed, denoise, model } = settings;
  const hash = model && models[`${model.kind}/${model.name}`];
  const fields: readonly (readonly [name: string, value: string | undefined])[] = [
    ["Steps", steps],
    ["Sampler", renamed(SAMPLERS, sampler)],
    ["Schedule type", renamed(SCHEDULERS, scheduler)],
    ["CFG scale", cfg],
    ["Seed", seed],
    ["Size", `${width}x${height}`],
    ["Model hash", hash?.replace("sha256:", "").slice(0, 10)],
    ["Model", model?.name.replace(/^.*[\\/]/s, "").replace(/\.[^.]{1,16}$/, "")],
    ["Denoising strength", denoise === undefined || Number(denoise) === 1 ? undefined : denoise],
    ["Version", `latentkit ${packageVersion()}`],
  ];
  const line = fields.flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${quoted(value)}`]));
  const lines = [positive, ...(negative === "" ? [] : [`Negative prompt: ${negative}`]), line.join(", ")];
  return lines.join("\n");
}

const renamed = (names: Readonly<Record<string, string>>, name: string | undefined): string | undefined =>
  name !== undefined && Object.hasOwn(names, name) ? names[name] : name;

/** A value as A1111 writes it: as JSON where it holds what separates fields. */
const quoted = (value: string): string => (/[,:\n]/.test(value) ? JSON.stringify(value) : value);
