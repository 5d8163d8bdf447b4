import { types } from "node:util";
import { inputError } from "../base/errors.js";
import { SAMPLERS } from "../tensor/sampling/sigmas.js";
import { Tensor } from "../tensor/tensor.js";

/** Address of an input, for messages. */
export interface InputAddress {
  readonly nodeId?: string;
  readonly node?: string;
  readonly input: string;
}

interface SocketRule {
  /** Values that fit, in words. */
  readonly expected: string;
  /** Returns the value as a node receives it; undefined if it does not fit. */
  read(value: unknown): unknown;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Tensor);

const fits = (ok: boolean, value: unknown): unknown => (ok ? value : undefined);

/** IMAGE [B, H, W, C]; one image [H, W, C] gains its batch. */
function readImage(value: unknown): unknown {
  if (!(value instanceof Tensor)) return undefined;
  const { shape } = value;
  const channels = shape[shape.length - 1] ?? 0;
  if (channels < 1 || channels > 4) return undefined;
  if (shape.length === 3) return value.reshape([1, ...shape]);
  return fits(shape.length === 4, value);
}

/** MASK [B, H, W] or with a channel axis; one mask [H, W] gains its batch. */
function readMask(value: unknown): unknown {
  if (!(value instanceof Tensor)) return undefined;
  const { shape } = value;
  if (shape.length === 2) return value.reshape([1, ...shape]);
  return fits(shape.length === 3 || shape.length === 4, value);
}

/** LATENT with 3 to 5 axes; null counts as no mask and no index. */
function readLatent(value: unknown): unknown {
  if (!isObject(value) || !(value.samples instanceof Tensor)) return undefined;
  const axes = value.samples.shape.length;
  const { noise_mask: mask, batch_index: index, ...rest } = value;
  const isMask = isAbsent(mask) || (mask instanceof Tensor && mask.shape.length >= 2);
  const isIndex = isAbsent(index) || (Array.isArray(index) && index.every((at) => Number.isSafeInteger(at) && at >= 0));
  if (axes < 3 || axes > 5 || !isMask || !isIndex) return undefined;
  if (mask !== null && index !== null) return value;
  return { ...rest, ...(!isAbsent(mask) && { noise_mask: mask }), ...(!isAbsent(index) && { batch_index: index }) };
}

const isAbsent = (value: unknown): boolean => value === undefined || value === null;

const isConditioning = (value: unknown): boolean =>
  Array.isArray(value) &&
  value.every(
    (entry) => Array.isArray(entry) && entry.length === 2 && entry[0] instanceof Tensor && isObject(entry[1]),
  );

const isPipe = (value: unknown): boolean =>
  isObject(value) &&
  (value.loader_settings === undefined || value.loader_settings === null || isObject(value.loader_settings));

function isModel(value: unknown): boolean {
  if (!isObject(value) || !isObject(value.sampling)) return false;
  const { sigmas, latentFormat } = value.sampling;
  // jest's context has its own Float32Array, which is not the core's: `types` tells, `instanceof` does not.
  return types.isFloat32Array(sigmas) && isObject(latentFormat) && typeof latentFormat.scaleFactor === "number";
}

const has = (value: unknown, method: string): boolean => isObject(value) && typeof value[method] === "function";

const isClip = (value: unknown): boolean =>
  isObject(value) && Array.isArray(value.encoders) && (value.encoders.length > 0 || has(value, "encodeText"));

// A tensor [n], as in ComfyUI; programs may hand in a Float32Array or a list.
/** SIGMAS [n]: a tensor, a Float32Array or a list of numbers from 0. */
function readSigmas(value: unknown): unknown {
  const list: unknown = value instanceof Tensor && value.shape.length === 1 ? value.data : value;
  if (!types.isFloat32Array(list) && !Array.isArray(list)) return undefined;
  for (const sigma of list)
    if (typeof sigma !== "number" || !(sigma >= 0 && Math.fround(sigma) < Infinity)) return undefined;
  return value instanceof Tensor ? value : Tensor.from(list, [list.length]);
}

const isSampler = (value: unknown): boolean =>
  isObject(value) && (SAMPLERS as readonly unknown[]).includes(value.sampler) && isObject(value.options);

const isNoise = (value: unknown): boolean =>
  isObject(value) &&
  typeof value.seed === "bigint" &&
  value.seed === BigInt.asUintN(64, value.seed) &&
  typeof value.enabled === "boolean";

/** Parts of each kind of guider. */
const GUIDER_PARTS = new Map<
  unknown,
  { readonly conditionings: readonly string[]; readonly numbers: readonly string[] }
>([
  ["cfg", { conditionings: ["positive", "negative"], numbers: ["cfg"] }],
  ["basic", { conditionings: ["positive"], numbers: [] }],
  ["dual-cfg", { conditionings: ["cond1", "cond2", "negative"], numbers: ["cfgConds", "cfgCond2Negative"] }],
  ["perp-neg", { conditionings: ["positive", "negative", "empty"], numbers: ["cfg", "negScale"] }],
]);

function isGuider(value: unknown): boolean {
  const parts = isObject(value) ? GUIDER_PARTS.get(value.kind) : undefined;
  if (!isObject(value) || parts === undefined || !isModel(value.model)) return false;
  return (
    parts.conditionings.every((name) => isConditioning(value[name])) &&
    parts.numbers.every((name) => Number.isFinite(value[name]))
  );
}

/** Largest factor of an upscale model. */
const MAX_SCALE = 64;

const isEmbeds = (value: unknown): boolean => value instanceof Tensor && value.size > 0 && value.shape.length >= 2;

const isUpscaleModel = (value: unknown): boolean =>
  isObject(value) &&
  has(value, "upscale") &&
  Number.isInteger(value.scale) &&
  (value.scale as number) >= 1 &&
  (value.scale as number) <= MAX_SCALE;

/** A rule for values that a node receives as they are. */
const rule = (expected: string, isFit: (value: unknown) => boolean): SocketRule => ({
  expected,
  read: (value) => fits(isFit(value), value),
});

const RULES: ReadonlyMap<string, SocketRule> = new Map(
  Object.entries({
    IMAGE: { expected: "an image: a tensor [B, H, W, C] with 1 to 4 channels", read: readImage },
    MASK: { expected: "a mask: a tensor [B, H, W] or [H, W]", read: readMask },
    LATENT: { expected: "a latent: { samples: tensor [B, C, H, W], noise_mask?, batch_index? }", read: readLatent },
    CONDITIONING: rule("a conditioning: a list of [tensor, options]", isConditioning),
    PIPE_LINE: rule("a pipe: an object with loader_settings", isPipe),
    MODEL: rule("a model: { sampling, predict? }", isModel),
    VAE: rule("a vae: { encode, decode }", (value) => has(value, "encode") || has(value, "decode")),
    CLIP: rule("a clip: { encoders }", isClip),
    SAMPLER: rule("a sampler: { sampler: a name that KSamplerSelect offers, options }", isSampler),
    SIGMAS: { expected: "sigmas: a tensor [n] of finite numbers from 0", read: readSigmas },
    NOISE: rule("noise: { seed: bigint, enabled }", isNoise),
    GUIDER: rule("a guider: { kind, model, … } with its conditionings", isGuider),
    CONTROL_NET: rule("a control net: an object of a host", isObject),
    UPSCALE_MODEL: rule("an upscale model: { scale: a whole number from 1 to 64, upscale }", isUpscaleModel),
    CLIP_VISION: rule("a clip vision model: { encode }", (value) => has(value, "encode")),
    IPADAPTER: rule("an IPAdapter: { isSdxl, embed, show }", (value) => has(value, "embed") && has(value, "show")),
    EMBEDS: rule("embedded pictures: a tensor [n, …]", isEmbeds),
    CLIP_VISION_OUTPUT: rule("an encoded picture: an object of a host", isObject),
    STYLE_MODEL: rule("a style model: { tokens }", (value) => has(value, "tokens")),
    GLIGEN: rule("a GLIGEN model: an object of a host", isObject),
    MODEL_PATCH: rule("a model patch: an object of a host", isObject),
    LIST: { expected: "a list", read: (value) => (Array.isArray(value) ? value : [value]) },
  }),
);

/**
 * Checks a value that comes through a link or from a caller. Returns it as a node receives it (MASK [H, W] as [1, H, W],
 * one LIST item as a list of one). For a union "IMAGE,MASK" the first type that fits counts.
 * Fails with input.wrong-type, naming node, input, value and what was expected.
 */
export function checkSocket(type: string, value: unknown, at: InputAddress): unknown {
  const alone = RULES.get(type)?.read(value);
  if (alone !== undefined) return alone;
  const members = type.split(",").map((member) => RULES.get(member.trim()));
  const expected: string[] = [];
  for (const rule of members) {
    if (rule === undefined) return value;
    expected.push(rule.expected);
  }
  for (const rule of members) {
    const received = rule?.read(value);
    if (received !== undefined) return received;
  }
  throw inputError("input.wrong-type", at, expected.join(" or "), value);
}
