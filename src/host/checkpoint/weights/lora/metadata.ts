import { describe, LatentkitError } from "../../../../base/errors.js";
import { isPlainObject, NumberLiteral, parseJson } from "../../../../io/json/lossless.js";
import { quotedName } from "../stored.js";

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
const MOST_CHARACTERS = 2 ** 22;
const MAX_DEPTH = 8;

const NETWORKS = ["unet", "text_encoder", "text_encoder_2"] as const;
/** Parts of a layer's name that a pattern may have. */
const MOST_PARTS = 16;

/** Network in whose settings a layer's alpha is, by the beginning of its name. */
function networkOf(module: string): (typeof NETWORKS)[number] {
  if (/^(?:text_encoder_2\.|lora_te2_|text_encoders\.clip_g\.)/.test(module)) return "text_encoder_2";
  return /^(?:text_encoders?\.|lora_te1?_)/.test(module) ? "text_encoder" : "unet";
}

/**
 * Makes the function that returns the alpha of a layer as PEFT's settings in a file's metadata have it, by the layer's name
 * or for its network. Throws model.invalid for numbers that are none and settings that contradict each other,
 * model.unsupported for names that are patterns.
 */
export function alphaInMetadata(name: string, metadata: Metadata): (module: string) => Alpha {
  const settings = settingsIn(name, metadata);
  const numberOf = (key: string, value: unknown): number => {
    const isText = typeof value === "string" && value.trim() !== "";
    const isNumber = typeof value === "number" || typeof value === "bigint" || value instanceof NumberLiteral;
    const number = isText || isNumber ? Number(value) : Number.NaN;
    if (Number.isFinite(number)) return number;
    throw invalid(name, key, "a finite number", describe(value));
  };
  const byNetwork = new Map<string, (module: string) => Alpha>();
  for (const network of NETWORKS) {
    const own = (key: string) => [`${network}.${key}`, key].find((candidate) => settings.has(candidate));
    const [alphaKey, patternKey, rootKey] = [own("lora_alpha"), own("alpha_pattern"), own("use_rslora")];
    const alpha = alphaKey === undefined ? undefined : numberOf(alphaKey, settings.get(alphaKey));
    const patterns =
      patternKey === undefined ? new Map() : patternsOf(name, patternKey, settings.get(patternKey), numberOf);
    const isRankStabilised = rootKey !== undefined && /^true$/i.test(String(settings.get(rootKey)));
    byNetwork.set(network, (module) => {
      const found = ofPattern(patterns, module) ?? alpha;
      return found === undefined ? {} : { alpha: found, isRankStabilised };
    });
  }
  return (module) => byNetwork.get(networkOf(module))!(module);
}

/** PEFT's settings by key, plain ones and those of the JSON text. */
function settingsIn(name: string, metadata: Metadata): ReadonlyMap<string, unknown> {
  const settings = new Map<string, unknown>(Object.entries(metadata));
  const text = Object.hasOwn(metadata, SETTINGS) ? metadata[SETTINGS]! : undefined;
  if (text === undefined) return settings;
  if (text.length > MOST_CHARACTERS)
    throw invalid(name, SETTINGS, `at most ${MOST_CHARACTERS} characters`, `${text.length}`);
  for (const [key, value] of Object.entries(objectIn(name, SETTINGS, text))) {
    const plain = settings.get(key);
    const isNumber = key === "lora_alpha" || key.endsWith(".lora_alpha");
    if (isNumber && plain !== undefined && Number(plain) !== Number(value))
      throw invalid(name, `${key} of ${SETTINGS}`, `${describe(plain)}, as the metadata has it too`, describe(value));
    settings.set(key, value);
  }
  return settings;
}

/** Alphas of single layers by the ends of their names, with the place of each in the list: the first that fits counts. */
type Patterns = ReadonlyMap<string, readonly [place: number, alpha: number]>;

function ofPattern(patterns: Patterns, module: string): number | undefined {
  if (patterns.size === 0) return undefined;
  let first = patterns.get(module);
  let dot = module.length;
  for (let parts = 0; parts < MOST_PARTS && dot > 0; parts++) {
    dot = module.lastIndexOf(".", dot - 1);
    const found = patterns.get(module.slice(dot + 1));
    if (found !== undefined && (first === undefined || found[0] < first[0])) first = found;
  }
  return first?.[1];
}

function patternsOf(
  name: string,
  key: string,
  value: unknown,
  numberOf: (key: string, value: unknown) => number,
): Patterns {
  const patterns = typeof value === "string" ? objectIn(name, key, value) : value;
  if (!isPlainObject(patterns)) throw invalid(name, key, "an object", describe(value));
  const places = Object.entries(patterns).map(([pattern, alpha], place) => {
    // PEFT takes them as regular expressions, in which diffusers writes plain names
    const layer = pattern.replace(/^\^/, "").replace(/\$$/, "").replaceAll("\\.", ".");
    if (/^[\w.-]*$/.test(layer)) return [layer, [place, numberOf(`${pattern} of ${key}`, alpha)]] as const;
    const message = `LoRA ${quotedName(name)}: ${key} of its metadata: expected names of layers, received the pattern ${describe(pattern)}.`;
    throw new LatentkitError("model.unsupported", message, { received: describe(pattern) });
  });
  return new Map(places);
}

function objectIn(name: string, key: string, text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = parseJson(text, { maxDepth: MAX_DEPTH, what: key });
  } catch {
    value = undefined;
  }
  if (isPlainObject(value)) return value;
  throw invalid(name, key, "an object in JSON", "other text");
}

// kohya's files always have tensors of alpha: where they lack, a conversion may have multiplied alpha into the weights
/** One sentence where kohya's metadata has an alpha beside another rank: for a file that has no tensors of alpha. */
export function metadataNote(name: string, metadata: Metadata): string | undefined {
  const [alpha, rank] = ["ss_network_alpha", "ss_network_dim"].map((key) =>
    Object.hasOwn(metadata, key) ? metadata[key] : undefined,
  );
  const isApplied = Object.keys(metadata).some((key) => key === SETTINGS || key.endsWith("lora_alpha"));
  if (isApplied || alpha === undefined || rank === undefined || Number(alpha) === Number(rank)) return undefined;
  return `LoRA ${quotedName(name)}: it has no tensors of alpha, so its factor is 1, though its metadata has ss_network_alpha ${describe(alpha)} and ss_network_dim ${describe(rank)}.`;
}

function invalid(name: string, key: string, expected: string, received: string): LatentkitError {
  const message = `LoRA ${quotedName(name)}: ${key} of its metadata: expected ${expected}, received ${received}.`;
  return new LatentkitError("model.invalid", message, { expected, received });
}
