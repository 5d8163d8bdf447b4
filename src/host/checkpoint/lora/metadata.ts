import { describe, LatentkitError } from "../../../base/errors.js";
import { isPlainObject, NumberLiteral, parseJson } from "../../../io/json/lossless.js";
import { quotedName } from "../weights/stored.js";

type Metadata = Readonly<Record<string, string>>;

/** Factor of a layer of low rank. */
export interface Alpha {
  /** Numerator of the factor alpha / rank. Absent: the factor is 1. */
  readonly alpha?: number;
  /** True if alpha is divided by the root of the rank, as rank-stabilised LoRAs are trained. */
  readonly isRankStabilised?: boolean;
}

/** Where diffusers keeps the settings of PEFT, as JSON. SimpleTuner and others have them as metadata of their own. */
const SETTINGS = "lora_adapter_metadata";
/** All names of PEFT's settings as JSON, with the text before their keys; names after the first may mean something else. */
const SCOPES_OF_SETTINGS: Readonly<Record<string, string>> = {
  [SETTINGS]: "",
  adapter_config: "",
  peft_config: "",
  lora_config: "",
  unet_lora_config: "unet.",
  text_encoder_lora_config: "text_encoder.",
  text_encoder_2_lora_config: "text_encoder_2.",
};
const MOST_CHARACTERS = 2 ** 22;
const MAX_DEPTH = 8;

const NETWORKS = ["unet", "text_encoder", "text_encoder_2"] as const;
/** Beginnings of the settings' keys for each network. */
const SCOPES = {
  unet: ["unet.", "transformer.", ""],
  text_encoder: ["text_encoder.", ""],
  text_encoder_2: ["text_encoder_2.", ""],
} as const;
/** Parts of a layer's name that a pattern may have. */
const MOST_PARTS = 32;

/** Network in whose settings a layer's alpha is, by the beginning of its name. */
function networkOf(module: string): (typeof NETWORKS)[number] {
  if (/^(?:text_encoder_2\.|lora_te2_|text_encoders\.clip_g\.)/.test(module)) return "text_encoder_2";
  return /^(?:text_encoders?\.|lora_te1?_)/.test(module) ? "text_encoder" : "unet";
}

/** Alphas of a file's metadata. */
export interface MetadataAlphas {
  /** The alpha of a layer by its name, or for its network. */
  alphaOf(module: string): Alpha;
  /** One sentence on patterns that fit none of these layers; undefined if all do. */
  unusedNote(modules: readonly string[]): string | undefined;
}

/**
 * Reads the alphas that PEFT's settings in a file's metadata have. Throws model.invalid for values that are not numbers and
 * settings that contradict each other, model.unsupported for names that are patterns.
 */
export function alphaInMetadata(name: string, metadata: Metadata): MetadataAlphas {
  const settings = settingsIn(name, metadata);
  const numberOf = (key: string, value: unknown): number => {
    const isText = typeof value === "string" && value.trim() !== "";
    const isNumber = typeof value === "number" || typeof value === "bigint" || value instanceof NumberLiteral;
    const number = isText || isNumber ? Number(value) : Number.NaN;
    if (Number.isFinite(number)) return number;
    throw invalid(name, key, "a finite number", describe(value));
  };
  const parsed = new Map<string, readonly Pattern[]>();
  const byNetwork = new Map<string, { alphaOf: (module: string) => Alpha; fitting: (module: string) => Pattern[] }>();
  for (const network of NETWORKS) {
    const own = (key: string) => SCOPES[network].map((scope) => scope + key).find((scoped) => settings.has(scoped));
    const [alphaKey, patternKey, rootKey] = [own("lora_alpha"), own("alpha_pattern"), own("use_rslora")];
    const alpha = alphaKey === undefined ? undefined : numberOf(alphaKey, settings.get(alphaKey));
    if (patternKey !== undefined && !parsed.has(patternKey))
      parsed.set(patternKey, patternsOf(name, patternKey, settings.get(patternKey), numberOf));
    const fitting = finder(parsed.get(patternKey ?? "") ?? []);
    const isRankStabilised = rootKey !== undefined && /^true$/i.test(String(settings.get(rootKey)));
    const alphaOf = (module: string): Alpha => {
      const found = fitting(module)[0]?.alpha ?? alpha;
      return found === undefined ? {} : { alpha: found, isRankStabilised };
    };
    byNetwork.set(network, { alphaOf, fitting });
  }
  const networkFor = (module: string) => byNetwork.get(networkOf(module))!;
  return {
    alphaOf: (module) => networkFor(module).alphaOf(module),
    unusedNote(modules) {
      const used = new Set(modules.flatMap((module) => networkFor(module).fitting(module)));
      for (const [key, patterns] of parsed) {
        const unused = patterns.find((pattern) => !used.has(pattern));
        if (unused === undefined) continue;
        const layer = quotedName(unused.pattern);
        return `LoRA ${quotedName(name)}: ${key} of its metadata has no effect for ${layer}, which matches no layer.`;
      }
      return undefined;
    },
  };
}

/** PEFT's settings by key, plain ones and those of the JSON texts. */
function settingsIn(name: string, metadata: Metadata): ReadonlyMap<string, unknown> {
  const settings = new Map<string, unknown>(Object.entries(metadata));
  for (const [source, scope] of Object.entries(SCOPES_OF_SETTINGS)) {
    if (!hasSettings(metadata, source)) continue;
    const text = metadata[source]!;
    if (text.length > MOST_CHARACTERS)
      throw invalid(name, source, `at most ${MOST_CHARACTERS} characters`, `${text.length}`);
    for (const [key, value] of flattened(objectIn(name, source, text), scope)) {
      const other = settings.get(key);
      const isNumber = key === "lora_alpha" || key.endsWith(".lora_alpha");
      if (isNumber && other !== undefined && Number(other) !== Number(value))
        throw invalid(name, `${key} of ${source}`, `${describe(other)}, as the metadata has it too`, describe(value));
      settings.set(key, value);
    }
  }
  return settings;
}

const hasSettings = (metadata: Metadata, source: string): boolean =>
  Object.hasOwn(metadata, source) && (source === SETTINGS || metadata[source]!.includes("lora_alpha"));

/** Settings by key, also those that stand in an object for each network, or for the one adapter of the file. */
function flattened(root: Readonly<Record<string, unknown>>, scope: string): [key: string, value: unknown][] {
  return Object.entries(root).flatMap(([key, value]): [string, unknown][] => {
    const isNetwork = NETWORKS.some((network) => network === key) || key === "transformer";
    if (!isPlainObject(value) || !(isNetwork || Object.hasOwn(value, "lora_alpha"))) return [[scope + key, value]];
    return Object.entries(value).map(([inner, setting]) => [(isNetwork ? `${key}.` : scope) + inner, setting]);
  });
}

/** Alpha of single layers. */
interface Pattern {
  /** As the metadata has it. */
  readonly pattern: string;
  /** The end of their names. */
  readonly layer: string;
  readonly alpha: number;
  /** Index in the list: the first that fits counts. */
  readonly place: number;
}

/** Makes the function that returns the patterns that fit a layer, in the order of their list. */
function finder(patterns: readonly Pattern[]): (module: string) => Pattern[] {
  const dotted = new Map(patterns.map((pattern) => [pattern.layer, pattern]));
  // a single word could be a part of a longer one among kohya's underscores
  const several = patterns.filter(({ layer }) => /[._]/.test(layer));
  const underscored = new Map(several.map((pattern) => [pattern.layer.replaceAll(".", "_"), pattern]));
  return (module) => {
    const isKohya = /^(?:lora|lycoris)_/.test(module);
    const [byEnd, separator] = isKohya ? [underscored, "_"] : [dotted, "."];
    const layer = isKohya ? module : withoutProcessor(module);
    const found = new Set<Pattern>();
    let start = byEnd.size === 0 ? 0 : layer.length;
    for (let parts = 0; parts < MOST_PARTS && start > 0; parts++) {
      start = layer.lastIndexOf(separator, start - 1);
      const pattern = byEnd.get(layer.slice(start + 1));
      if (pattern !== undefined) found.add(pattern);
    }
    return [...found].sort((a, b) => a.place - b.place);
  };
}

/** Name of a layer that diffusers before PEFT calls `attn1.processor.to_out`: `attn1.to_out.0`. */
const withoutProcessor = (module: string): string =>
  module.replace(/\.processor\.(to_[qkv]|to_out)$/, (_, layer) => (layer === "to_out" ? ".to_out.0" : `.${layer}`));

function patternsOf(
  name: string,
  key: string,
  value: unknown,
  numberOf: (key: string, value: unknown) => number,
): Pattern[] {
  const patterns = typeof value === "string" ? objectIn(name, key, value) : value;
  if (!isPlainObject(patterns)) throw invalid(name, key, "an object", describe(value));
  return Object.entries(patterns).map(([pattern, alpha], place) => {
    // PEFT takes them as regular expressions, in which diffusers writes plain names
    const layer = pattern.replace(/^\^/, "").replace(/\$$/, "").replaceAll("\\.", ".");
    if (/^[\w.-]*$/.test(layer)) return { pattern, layer, alpha: numberOf(`${pattern} of ${key}`, alpha), place };
    const message = `LoRA ${quotedName(name)}: ${key} of its metadata: expected names of layers, received the pattern ${describe(pattern)}.`;
    throw new LatentkitError("model.unsupported", message, { received: describe(pattern) });
  });
}

function objectIn(name: string, key: string, text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = parseJson(text, { maxDepth: MAX_DEPTH, what: key });
  } catch {
    value = undefined;
  }
  if (isPlainObject(value)) return value;
  throw invalid(name, key, "a JSON object", "text that is not JSON");
}

/** Names under which training programs have alpha and rank, the most specific first. */
const ALPHAS_AND_RANKS = [
  ["ss_network_alpha", "ss_network_dim"],
  ["network_alpha", "network_dim"],
  ["alpha", "rank"],
] as const;

// kohya's files always have tensors of alpha: if they are missing, a conversion may have multiplied alpha into the weights
/** A warning if metadata other than PEFT's has an alpha beside a different rank: for a file without tensors of alpha. */
export function metadataNote(name: string, metadata: Metadata): string | undefined {
  const isApplied =
    Object.keys(metadata).some((key) => key.endsWith("lora_alpha")) ||
    Object.keys(SCOPES_OF_SETTINGS).some((source) => hasSettings(metadata, source));
  if (isApplied) return undefined;
  for (const keys of ALPHAS_AND_RANKS) {
    const [alpha, rank] = keys.map((key) => (Object.hasOwn(metadata, key) ? metadata[key] : undefined));
    if (alpha === undefined || rank === undefined || Number(alpha) === Number(rank)) continue;
    return `LoRA ${quotedName(name)}: it has no alpha tensors, so its scale is 1 although its metadata has ${keys[0]} ${describe(alpha)} and ${keys[1]} ${describe(rank)}.`;
  }
  return undefined;
}

function invalid(name: string, key: string, expected: string, received: string): LatentkitError {
  const message = `LoRA ${quotedName(name)}: ${key} of its metadata: expected ${expected}, received ${received}.`;
  return new LatentkitError("model.invalid", message, { expected, received });
}
