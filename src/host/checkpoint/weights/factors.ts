import { describe, LatentkitError } from "../../../base/errors.js";
import { isPlainObject, parseJson } from "../../../io/json/lossless.js";
import { quotedName, type StoredWeight, type WeightFile, type WeightMap } from "./stored.js";
import { readStored } from "./values.js";

const WEIGHT = ".weight";
/** Ends of the keys of factors: of "scaled fp8" files, and of newer ones. */
const FACTORS = [".scale_weight", ".weight_scale"];
/** Ends of the keys of what a product in 8 bits would need; here products are of float32. */
const FACTORS_OF_INPUTS = [".scale_input", ".input_scale"];
/** End of the key of a layer's format, a text in JSON. */
const FORMAT = ".comfy_quant";
/** Formats whose weights are their values times a factor, with the type of the values. */
const FORMATS: Readonly<Record<string, string>> = { float8_e4m3fn: "F8_E4M3", float8_e5m2: "F8_E5M2" };
/** Metadata with the formats of all layers. */
const FORMATS_OF_LAYERS = "_quantization_metadata";

/** SDXL has some thousand layers. */
const MOST_FORMATS = 2 ** 14;
const MOST_FORMAT_BYTES = 4096;
const MOST_METADATA = 2 ** 22;
const MAX_DEPTH = 8;

/**
 * The file with its 8-bit weights' factors beside them instead of under keys of their own. Throws model.unsupported for
 * weights of a format that is not known, by key, and model.invalid for a factor that is missing or there twice.
 */
export async function withFactors(file: WeightFile): Promise<WeightFile> {
  const { weights, stored } = joinFactors(file);
  const texts: string[] = [];
  for (const format of stored) texts.push(Buffer.from(await readStored(format)).toString());
  checkFormats(file, { weights, stored }, texts);
  return { ...file, weights };
}

/** Checks the formats of a file's layers, `texts` being what `stored` holds. Throws as withFactors. */
export function checkFormats(
  file: Pick<WeightFile, "name" | "metadata">,
  { weights, stored }: { readonly weights: WeightMap; readonly stored: readonly StoredWeight[] },
  texts: readonly string[],
): void {
  const formats = formatsInMetadata(file);
  for (const [i, { key }] of stored.entries()) {
    const { format } = objectIn(file, texts[i]!, key);
    formats.push({ layer: key.slice(0, -FORMAT.length), from: key, format });
  }
  for (const { layer, from, format } of formats) checkFormat(file, weights.get(layer + WEIGHT), from, format);
}

/**
 * The weights of a file with their factors, and what says the formats of layers, unread. Throws model.invalid for a second
 * factor, and for more or longer formats than files have.
 */
export function joinFactors(file: Pick<WeightFile, "name" | "weights">): {
  weights: Map<string, StoredWeight>;
  stored: StoredWeight[];
} {
  const weights = new Map(file.weights);
  const stored: StoredWeight[] = [];
  /** The weight that a key with this ending stands beside. */
  const beside = (key: string, ending: string): StoredWeight | undefined =>
    key.endsWith(ending) ? weights.get(key.slice(0, -ending.length) + WEIGHT) : undefined;
  for (const [key, entry] of file.weights) {
    for (const ending of FACTORS) {
      const weight = beside(key, ending);
      if (weight === undefined) continue;
      if (weight.factor !== undefined)
        throw invalid(
          file,
          `one factor of ${describe(weight.key)}`,
          `${describe(weight.factor.key)} and ${describe(key)}`,
        );
      weights.set(weight.key, { ...weight, factor: entry });
      weights.delete(key);
    }
    if (FACTORS_OF_INPUTS.some((ending) => beside(key, ending) !== undefined)) weights.delete(key);
    if (beside(key, FORMAT) === undefined) continue;
    const bytes = entry.to - entry.from;
    if (bytes > MOST_FORMAT_BYTES)
      throw invalid(file, `${describe(key)} of at most ${MOST_FORMAT_BYTES} bytes`, `${bytes}`);
    if (stored.length === MOST_FORMATS) throw invalid(file, `at most ${MOST_FORMATS} formats of layers`, "more");
    stored.push(entry);
    weights.delete(key);
  }
  return { weights, stored };
}

/** The format of a layer, and where it stands. */
interface LayerFormat {
  readonly layer: string;
  readonly from: string;
  readonly format: unknown;
}

function checkFormat(
  file: Pick<WeightFile, "name">,
  weight: StoredWeight | undefined,
  from: string,
  format: unknown,
): void {
  const type = typeof format === "string" && Object.hasOwn(FORMATS, format) ? FORMATS[format] : undefined;
  if (type === undefined) {
    const expected = `weights of the format ${Object.keys(FORMATS).join(" or ")}`;
    const received = `${describe(format)}, by ${describe(from)}`;
    const message = `Model ${quotedName(file.name)}: expected ${expected}, received ${received}.`;
    throw new LatentkitError("model.unsupported", message, { expected, received });
  }
  if (weight === undefined) return;
  if (weight.dtype !== type)
    throw invalid(file, `${describe(weight.key)} of ${type}, as ${describe(from)} says`, weight.dtype);
  if (weight.factor === undefined)
    throw invalid(file, `a factor of ${describe(weight.key)}, as ${describe(from)} says`, "none");
}

/** Formats of layers, of a file that has them in its metadata. */
function formatsInMetadata(file: Pick<WeightFile, "name" | "metadata">): LayerFormat[] {
  const text = Object.hasOwn(file.metadata, FORMATS_OF_LAYERS) ? file.metadata[FORMATS_OF_LAYERS]! : undefined;
  if (text === undefined) return [];
  if (text.length > MOST_METADATA)
    throw invalid(file, `${FORMATS_OF_LAYERS} of at most ${MOST_METADATA} characters`, `${text.length}`);
  const { layers } = objectIn(file, text, FORMATS_OF_LAYERS);
  if (!isPlainObject(layers)) throw invalid(file, `layers in ${FORMATS_OF_LAYERS}`, describe(layers));
  return Object.entries(layers).map(([layer, settings]) => ({
    layer,
    from: `${FORMATS_OF_LAYERS} of ${layer}`,
    format: isPlainObject(settings) ? settings.format : settings,
  }));
}

function objectIn(file: Pick<WeightFile, "name">, text: string, key: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = parseJson(text, { maxDepth: MAX_DEPTH, what: "format" });
  } catch {
    value = undefined;
  }
  if (isPlainObject(value)) return value;
  throw invalid(file, `${describe(key)} to be an object in JSON`, "other text");
}

function invalid(file: Pick<WeightFile, "name">, expected: string, received: string): LatentkitError {
  const message = `Model ${quotedName(file.name)}: expected ${expected}, received ${received}.`;
  return new LatentkitError("model.invalid", message, { expected, received });
}
