import { describe, LatentkitError, valueError } from "../../base/errors.js";
import { CHECKED_LATER, checkOptions, type OptionRules } from "../../base/options.js";
import { suggest } from "../../base/suggest.js";
import type { SamplingSpec } from "../../native/bindings.js";
import { exp, log } from "../../native/elementary.js";
import { loadNative } from "../../native/load.js";
import { LATENT_FORMATS, type LatentFormat } from "./latent-format.js";

export type Prediction = "eps" | "v" | "edm" | "edm-v" | "flow";

/** Noise levels of a model family: its table and the maps between sigma and timestep. */
export interface ModelSampling {
  readonly name: string;
  readonly prediction: Prediction;
  /** Rising table of sigmas: 1,000 entries, 10,000 for Flux and Cascade. */
  readonly sigmas: Float32Array;
  readonly sigmaMin: number;
  readonly sigmaMax: number;
  timestep(sigma: number): number;
  sigma(timestep: number): number;
  readonly latentFormat: LatentFormat;
}

/** Parameters that replace the family's own; one that the family does not have is refused. */
export interface SamplingOverrides {
  /** Shift of a flow model's noise levels. Default: the family's. */
  shift?: number;
  /** Factor of a flow model's timesteps. Default: the family's. */
  multiplier?: number;
  /** Least noise level of a continuous model. Default: the family's. */
  sigmaMin?: number;
  /** Greatest noise level of a continuous model. Default: the family's. */
  sigmaMax?: number;
  /** First beta of the table. Default: the family's. */
  linearStart?: number;
  /** Last beta of the table. Default: the family's. */
  linearEnd?: number;
  /** Whether the table is rescaled to end in zero terminal SNR. Default: the family's. */
  zsnr?: boolean;
}

interface Family {
  readonly prediction: Prediction;
  readonly spec: SamplingSpec;
  readonly format: LatentFormat;
}

/** Parameters of a family unless it sets its own. */
export const DEFAULT_SPEC: SamplingSpec = {
  kind: "discrete",
  linearStart: 0.00085,
  linearEnd: 0.012,
  zsnr: false,
  sigmaMin: 0.002,
  sigmaMax: 80,
  shift: 1,
  multiplier: 1,
};

const family = (prediction: Prediction, spec: Partial<SamplingSpec>, format: LatentFormat): Family => ({
  prediction,
  spec: { ...DEFAULT_SPEC, ...spec },
  format,
});

const { SD15, SDXL, SDXL_Playground_2_5, SD3, Flux, Flux2, Wan21, SC_B, SC_Prior } = LATENT_FORMATS;

const FAMILIES = {
  sd15: family("eps", {}, SD15),
  sdxl: family("eps", {}, SDXL),
  "sd21-v": family("v", {}, SD15),
  "sd21-v-zsnr": family("v", { zsnr: true }, SD15),
  "hunyuan-dit": family("v", { linearEnd: 0.018 }, SDXL),
  svd: family("edm-v", { kind: "edm", sigmaMax: 700 }, SD15),
  playground25: family("edm", { kind: "edm" }, SDXL_Playground_2_5),
  sd3: family("flow", { kind: "flow", shift: 3, multiplier: 1000 }, SD3),
  auraflow: family("flow", { kind: "flow", shift: 1.73 }, SDXL),
  flux: family("flow", { kind: "flux", shift: 1.15 }, Flux),
  flux2: family("flow", { kind: "flux", shift: 2.02 }, Flux2),
  "z-image": family("flow", { kind: "flow", shift: 3 }, Flux),
  "qwen-image": family("flow", { kind: "flux", shift: 1.15 }, Wan21),
  "flux-schnell": family("flow", { kind: "flow" }, Flux),
  "cascade-b": family("eps", { kind: "cascade" }, SC_B),
  "cascade-c": family("eps", { kind: "cascade", shift: 2 }, SC_Prior),
} as const satisfies Record<string, Family>;

/** Names of the model families whose schedules are known. */
export type ModelSamplingName = keyof typeof FAMILIES;

/** @internal */
export const MODEL_SAMPLINGS = Object.freeze(Object.keys(FAMILIES)) as readonly ModelSamplingName[];

/** Parameters of each kind of table. */
const PARAMETERS: Record<SamplingSpec["kind"], readonly (keyof SamplingOverrides)[]> = {
  discrete: ["linearStart", "linearEnd", "zsnr"],
  edm: ["sigmaMin", "sigmaMax"],
  flow: ["shift", "multiplier"],
  flux: ["shift"],
  cascade: ["shift"],
};

const OVERRIDE_RULES: OptionRules<SamplingOverrides> = {
  shift: CHECKED_LATER,
  multiplier: CHECKED_LATER,
  sigmaMin: CHECKED_LATER,
  sigmaMax: CHECKED_LATER,
  linearStart: CHECKED_LATER,
  linearEnd: CHECKED_LATER,
  zsnr: CHECKED_LATER,
};

const SPEC = Symbol("latentkit.samplingSpec");

/** Native parameters of a sampling of modelSampling(), also of a spread copy; a foreign object has none. */
export const specOf = (sampling: ModelSampling & { [SPEC]?: SamplingSpec }): SamplingSpec | undefined => sampling[SPEC];

/** The sampling of a model family by name. Fails with value.invalid or value.out-of-range. */
export function modelSampling(name: ModelSamplingName, overrides: SamplingOverrides = {}): ModelSampling {
  if (typeof name !== "string" || !Object.hasOwn(FAMILIES, name)) {
    const { suggestion, hint } = suggest(name, MODEL_SAMPLINGS);
    const message = `Model sampling: expected one of ${MODEL_SAMPLINGS.join(", ")}, received ${describe(name)}.${hint}`;
    throw new LatentkitError("value.invalid", message, { suggestion });
  }
  const { prediction, spec: base, format } = FAMILIES[name];
  const spec: SamplingSpec = { ...base, ...checkOverrides(name, base, overrides) };
  const native = loadNative();
  const table = native.samplingTable(spec);
  requireFinite(name, table, overrides);
  return Object.freeze({
    [SPEC]: spec,
    name,
    prediction,
    sigmas: table,
    sigmaMin: table[0]!,
    sigmaMax: table[table.length - 1]!,
    timestep: (sigma: number) => native.samplingTimestep(spec, requirePositive("sigma", sigma)),
    sigma: (timestep: number) => native.samplingSigma(spec, requireNumber("timestep", timestep)),
    latentFormat: format,
  });
}

/** Throws for a table beyond float32, which numbers within their ranges may give. */
function requireFinite(name: string, table: Float32Array, overrides: SamplingOverrides): void {
  if (Number.isFinite(table[0]) && Number.isFinite(table[table.length - 1])) return;
  const received = Object.entries(overrides).map(([key, value]) => `${key} ${value}`);
  const message = `Model sampling ${name}: expected numbers that give finite sigmas, received ${received.join(", ")}.`;
  throw new LatentkitError("value.out-of-range", message);
}

function requireNumber(name: string, value: unknown): number {
  if (typeof value === "number") return value;
  throw valueError("value.invalid", name, "a number", value);
}

function requirePositive(name: string, value: unknown): number {
  const number = requireNumber(name, value);
  // as float32, like the table: what rounds to 0 there has no timestep
  if (Math.fround(number) > 0) return number;
  throw valueError("value.out-of-range", name, "a number above 0", number);
}

function checkOverrides(name: string, base: SamplingSpec, overrides: SamplingOverrides): Partial<SamplingSpec> {
  checkOptions("modelSampling", overrides, OVERRIDE_RULES);
  const allowed = PARAMETERS[base.kind];
  const set = Object.entries(overrides).filter(([, value]) => value !== undefined);
  for (const [key, value] of set) {
    const at = `Model sampling ${name}, ${key}`;
    if (!(allowed as readonly string[]).includes(key)) {
      const message = `Model sampling ${name} has no parameter ${key}: expected one of ${allowed.join(", ")}.`;
      throw new LatentkitError("value.invalid", message);
    }
    if (key === "zsnr") {
      if (typeof value !== "boolean") throw valueError("value.invalid", at, "a boolean", value);
    } else if (typeof value !== "number" || !Number.isFinite(value) || (value <= 0 && base.kind !== "flux"))
      throw valueError("value.out-of-range", at, "a finite number above 0", value);
  }
  const merged = { ...base, ...Object.fromEntries(set) } as SamplingSpec;
  const [low, high] =
    base.kind === "edm" ? (["sigmaMin", "sigmaMax"] as const) : (["linearStart", "linearEnd"] as const);
  if (merged[low] >= merged[high]) {
    const received = `${low} ${merged[low]} and ${high} ${merged[high]}`;
    const message = `Model sampling ${name}: expected ${low} below ${high}, received ${received}.`;
    throw new LatentkitError("value.out-of-range", message);
  }
  if (merged.linearEnd < 1) return merged;
  throw valueError("value.out-of-range", `Model sampling ${name}, linearEnd`, "a number below 1", merged.linearEnd);
}

/** Number of timesteps that latent consistency models are distilled to. */
const TIMESTEPS = 50;

/**
 * The sampling of a latent consistency model: every n-th level of a discrete table, so that 50 are left. Luo et al. 2023,
 * "Latent Consistency Models". timestep() gives those of the whole table.
 */
export function distilledSampling(whole: ModelSampling): ModelSampling {
  const skip = Math.floor(whole.sigmas.length / TIMESTEPS);
  const last = whole.sigmas.length - 1;
  const sigmas = Float32Array.from({ length: TIMESTEPS }, (_, i) => whole.sigmas[last - (TIMESTEPS - 1 - i) * skip]!);
  const logs = sigmas.map(log);
  const { name, prediction, latentFormat } = whole;
  return Object.freeze({
    name,
    prediction,
    sigmas,
    sigmaMin: sigmas[0]!,
    sigmaMax: sigmas[TIMESTEPS - 1]!,
    timestep: (sigma: number) => nearest(logs, log(sigma)) * skip + skip - 1,
    sigma: (timestep: number) => {
      const at = Math.min(Math.max((timestep - (skip - 1)) / skip, 0), TIMESTEPS - 1);
      const [low, high] = [Math.floor(at), Math.ceil(at)];
      return Math.fround(exp(logs[low]! + (logs[high]! - logs[low]!) * (at - low)));
    },
    latentFormat,
  });
}

/** Index of the first value of the smallest distance. */
function nearest(values: Float32Array, value: number): number {
  let best = 0;
  for (const [i, candidate] of values.entries()) {
    if (Math.abs(candidate - value) < Math.abs(values[best]! - value)) best = i;
  }
  return best;
}
