import { describe, LatentkitError } from "../../../base/errors.js";
import { isPlainObject, parseJson } from "../../../io/json/lossless.js";
import { type LayerErrors, NF4_STATE, packNf4, packScaled } from "./quantised-formats.js";
import { quotedName, type StoredWeight, type WeightFile, type WeightMap } from "./stored.js";
import { readStored, readValues } from "./values.js";

/** Ends of the keys of factors, in the place of `weight`: of "scaled fp8" files, and of newer ones. */
const FACTORS = ["scale_weight", "weight_scale"];
/** Ends of the keys of what a product in 8 bits would need; here products are of float32. */
const FACTORS_OF_INPUTS = ["scale_input", "input_scale"];
/** End of the key of a layer's format, a text in JSON. */
const FORMAT = "comfy_quant";
/** Keys of factors and formats, which are refused where no weight is beside them. */
const OF_A_WEIGHT = /\.(?:scale_weight|weight_scale|comfy_quant)$/;
/** Beginning of the keys of factors that stand apart from their weights. */
const APART = /^scales?\./;
/** Formats whose weights are their values times a factor, with the type of the values. */
const FORMATS: Readonly<Record<string, string>> = { float8_e4m3fn: "F8_E4M3", float8_e5m2: "F8_E5M2" };
/** Settings of a format that change no weight. */
const HARMLESS = ["format", "full_precision_matrix_mult"];
/** Metadata with the formats of all layers. */
const FORMATS_OF_LAYERS = "_quantization_metadata";

/** SDXL has some thousand layers. */
const MOST_FORMATS = 2 ** 14;
const MOST_FORMAT_BYTES = 4096;
const MOST_METADATA = 2 ** 22;
const MAX_DEPTH = 8;

/** Values of the codes of NF4. Source: Dettmers et al. 2023, "QLoRA", appendix E. */
const NF4_VALUES = [
  -1, -0.6961928, -0.52507305, -0.3949175, -0.28444138, -0.18477343, -0.091050036, 0, 0.0795803, 0.1609302, 0.2461123,
  0.33791524, 0.44070983, 0.562617, 0.72295684, 1,
];
const NF4_TOLERANCE = 1e-6;

/**
 * The file with its 8-bit weights' factors beside them instead of under keys of their own. Throws as joinFactors,
 * model.unsupported for weights of a format or with settings that are not known, by key, and model.invalid for a factor
 * that is missing or there twice.
 */
export async function withFactors(file: WeightFile): Promise<WeightFile> {
  const { weights, stored } = joinFactors(file);
  const texts: string[] = [];
  for (const format of stored) texts.push(Buffer.from(await readStored(format)).toString());
  applyFormats(file, { weights, stored }, texts);
  for (const weight of weights.values()) await requireNf4Table(file, weight);
  return { ...file, weights };
}

/**
 * Checks the formats of a file's layers, `texts` being what `stored` holds, and puts packed weights in the place of their
 * tensors. Throws as withFactors.
 */
export function applyFormats(
  file: Pick<WeightFile, "name" | "metadata">,
  { weights, stored }: { readonly weights: Map<string, StoredWeight>; readonly stored: readonly StoredWeight[] },
  texts: readonly string[],
): void {
  const formats = formatsInMetadata(file);
  for (const [i, { key }] of stored.entries()) {
    const settings = objectIn(file, texts[i]!, key);
    const weight = weightOfNf4(weights, key);
    if (weight !== undefined) packNf4(weights, weight, settings, errorsOf(file));
    else formats.push({ key, from: quotedName(key), settings });
  }
  for (const format of formats) applyFormat(file, weights, format);
}

const weightOfNf4 = (weights: WeightMap, key: string): StoredWeight | undefined =>
  key.endsWith(NF4_STATE) ? weights.get(key.slice(0, -NF4_STATE.length)) : undefined;

const errorsOf = (file: FileName): LayerErrors => ({
  invalid: (expected, received) => invalid(file, expected, received),
  unsupported: (expected, received) => unsupported(file, expected, received),
});

/** Throws model.unsupported for a weight of NF4 whose codes have other values than the runtime's operator has for them. */
async function requireNf4Table(file: FileName, { key, packing }: StoredWeight): Promise<void> {
  if (packing?.format !== "NF4") return;
  const values = await readValues(packing.table);
  if (NF4_VALUES.every((value, code) => Math.abs(values[code]! - value) < NF4_TOLERANCE)) return;
  throw unsupported(file, `the values of NF4 in ${quotedName(packing.table.key)}, beside ${quotedName(key)}`, "others");
}

/**
 * The weights of a file with their factors, and what says the formats of layers, unread. Throws model.invalid for a second
 * factor, and for more or longer formats than files have; model.unsupported for a factor or a format beside no weight.
 */
export function joinFactors(file: Pick<WeightFile, "name" | "weights">): {
  weights: Map<string, StoredWeight>;
  stored: StoredWeight[];
} {
  const weights = new Map(file.weights);
  const stored: StoredWeight[] = [];
  for (const [key, entry] of file.weights) {
    for (const ending of FACTORS) {
      const weight = weightBeside(weights, key, ending);
      if (weight === undefined) continue;
      if (weight.factor !== undefined)
        throw invalid(
          file,
          `one factor of ${quotedName(weight.key)}`,
          `${quotedName(weight.factor.key)} and ${quotedName(key)}`,
        );
      weights.set(weight.key, { ...weight, factor: entry });
      weights.delete(key);
    }
    if (FACTORS_OF_INPUTS.some((ending) => weightBeside(weights, key, ending) !== undefined)) weights.delete(key);
    if (weightBeside(weights, key, FORMAT) !== undefined || weightOfNf4(weights, key) !== undefined) {
      const bytes = entry.to - entry.from;
      if (bytes > MOST_FORMAT_BYTES)
        throw invalid(file, `${quotedName(key)} of at most ${MOST_FORMAT_BYTES} bytes`, `${bytes}`);
      if (stored.length === MOST_FORMATS) throw invalid(file, `at most ${MOST_FORMATS} formats of layers`, "more");
      stored.push(entry);
      weights.delete(key);
    }
    if (weights.has(key) && isLone(file.weights, key))
      throw unsupported(
        file,
        "a weight for each factor and format",
        `one with ${quotedName(key)}, which stands beside no weight`,
      );
  }
  return { weights, stored };
}

/** The weight that a key with this ending stands beside: `a.weight` for `a.weight_scale`, also OpenCLIP's `in_proj_weight`. */
function weightBeside(weights: WeightMap, key: string, ending: string): StoredWeight | undefined {
  if (!key.endsWith(ending)) return undefined;
  const layer = key.slice(0, -ending.length);
  return (
    weights.get(`${layer}weight`) ?? (layer.endsWith(".") ? weights.get(`${layer.slice(0, -1)}_weight`) : undefined)
  );
}

/** Whether a key is a factor's, or a format's, that no weight of the file has: also `scales.a.weight` for `a.weight`. */
const isLone = (weights: WeightMap, key: string): boolean =>
  OF_A_WEIGHT.test(key) || (APART.test(key) && weights.has(key.replace(APART, "")));

/** The format of a layer, and where it stands: as if under `key`, in words `from`. */
interface LayerFormat {
  readonly key: string;
  readonly from: string;
  readonly settings: Readonly<Record<string, unknown>>;
}

function applyFormat(file: FileName, weights: Map<string, StoredWeight>, { key, from, settings }: LayerFormat): void {
  const weight = weightBeside(weights, key, FORMAT);
  const { format } = settings;
  const isScaled = format === "mxfp8" || format === "nvfp4";
  const type = typeof format === "string" && Object.hasOwn(FORMATS, format) ? FORMATS[format] : undefined;
  const expected = `weights of the format ${Object.keys(FORMATS).join(", ")}, mxfp8 or nvfp4`;
  if (type === undefined && !isScaled)
    throw unsupported(file, expected, `${format === undefined ? "none" : describe(format)}, by ${from}`);
  const further = Object.keys(settings).find((name) => !HARMLESS.includes(name) && settings[name]);
  if (further !== undefined)
    throw unsupported(file, expected, `one with the further setting ${describe(further)}, by ${from}`);
  if (weight === undefined) return;
  if (isScaled) {
    packScaled(weights, weight, format, errorsOf(file));
    return;
  }
  if (weight.dtype !== type) throw invalid(file, `${quotedName(weight.key)} of ${type}, as ${from} says`, weight.dtype);
  if (weight.factor === undefined)
    throw invalid(file, `a factor of ${quotedName(weight.key)}, as ${from} says`, "none");
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
    key: `${layer}.${FORMAT}`,
    from: quotedName(`${FORMATS_OF_LAYERS} of ${layer}`),
    settings: isPlainObject(settings) ? settings : { format: settings },
  }));
}

function objectIn(file: FileName, text: string, key: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = parseJson(text, { maxDepth: MAX_DEPTH, what: "format" });
  } catch {
    value = undefined;
  }
  if (isPlainObject(value)) return value;
  throw invalid(file, `${quotedName(key)} to be an object in JSON`, "other text");
}

type FileName = Pick<WeightFile, "name">;

const invalid = (file: FileName, expected: string, received: string): LatentkitError =>
  refusal("model.invalid", file, expected, received);

const unsupported = (file: FileName, expected: string, received: string): LatentkitError =>
  refusal("model.unsupported", file, expected, received);

function refusal(
  code: "model.invalid" | "model.unsupported",
  { name }: FileName,
  expected: string,
  received: string,
): LatentkitError {
  return new LatentkitError(code, `Model ${quotedName(name)}: expected ${expected}, received ${received}.`, {
    expected,
    received,
  });
}
