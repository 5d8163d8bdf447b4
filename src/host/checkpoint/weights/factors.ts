import { describe } from "../../../base/errors.js";
import { isPlainObject, NumberLiteral, parseJson } from "../../../io/json/lossless.js";
import {
  invalid,
  type Packing,
  quotedName,
  type StoredWeight,
  unsupported,
  valuesIn,
  type WeightFile,
  type WeightMap,
} from "./stored.js";
import { readStored, readValues } from "./values.js";

/** Ends of the keys of factors, in the place of `weight`: of "scaled fp8" files, and of newer ones. */
const FACTORS = ["scale_weight", "weight_scale"];
/** Ends of keys that only products in 8 bits need; here products are in float32. */
const FACTORS_OF_INPUTS = ["scale_input", "input_scale"];
/** End of the key of a layer's format, a text in JSON. */
const FORMAT = "comfy_quant";
/** Keys of factors and formats, which are refused if no weight is beside them. */
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
 * Checks the formats of a file's layers, with `texts` from `stored`, and puts packed weights in the place of their
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
    if (weight !== undefined) packNf4(weights, weight, settings, file.name);
    else formats.push({ key, from: quotedName(key), settings });
  }
  for (const format of formats) applyFormat(file, weights, format);
}

const weightOfNf4 = (weights: WeightMap, key: string): StoredWeight | undefined =>
  key.endsWith(NF4_STATE) ? weights.get(key.slice(0, -NF4_STATE.length)) : undefined;

/** Throws model.unsupported for a weight of NF4 whose codes have other values than the runtime's operator has for them. */
async function requireNf4Table(file: Pick<WeightFile, "name">, { key, packing }: StoredWeight): Promise<void> {
  if (packing?.format !== "NF4") return;
  const values = await readValues(packing.table);
  if (NF4_VALUES.every((value, code) => Math.abs(values[code]! - value) < NF4_TOLERANCE)) return;
  throw unsupported(
    file.name,
    `the values of NF4 in ${quotedName(packing.table.key)}, beside ${quotedName(key)}`,
    "others",
  );
}

/**
 * The weights of a file with their factors, and the formats of its layers, unread. Throws model.invalid for a second
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
          file.name,
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
        throw invalid(file.name, `${quotedName(key)} of at most ${MOST_FORMAT_BYTES} bytes`, `${bytes}`);
      if (stored.length === MOST_FORMATS) throw invalid(file.name, `at most ${MOST_FORMATS} formats of layers`, "more");
      stored.push(entry);
      weights.delete(key);
    }
    if (weights.has(key) && isLone(file.weights, key))
      throw unsupported(
        file.name,
        "a weight for each factor and format",
        `one with ${quotedName(key)}, which belongs to no weight`,
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

function applyFormat(
  file: Pick<WeightFile, "name">,
  weights: Map<string, StoredWeight>,
  { key, from, settings }: LayerFormat,
): void {
  const weight = weightBeside(weights, key, FORMAT);
  const { format } = settings;
  const isScaled = format === "mxfp8" || format === "nvfp4";
  const type = typeof format === "string" && Object.hasOwn(FORMATS, format) ? FORMATS[format] : undefined;
  const expected = `weights of the format ${Object.keys(FORMATS).join(", ")}, mxfp8 or nvfp4`;
  if (type === undefined && !isScaled)
    throw unsupported(file.name, expected, `${format === undefined ? "none" : describe(format)}, by ${from}`);
  const further = Object.keys(settings).find((name) => !HARMLESS.includes(name) && settings[name]);
  if (further !== undefined)
    throw unsupported(file.name, expected, `one with the further setting ${describe(further)}, by ${from}`);
  if (weight === undefined) return;
  if (isScaled) {
    packScaled(weights, weight, format, file.name);
    return;
  }
  if (weight.dtype !== type)
    throw invalid(file.name, `${quotedName(weight.key)} of ${type}, as ${from} says`, weight.dtype);
  if (weight.factor === undefined)
    throw invalid(file.name, `a factor of ${quotedName(weight.key)}, as ${from} says`, "none");
}

/** Formats of layers, of a file that has them in its metadata. */
function formatsInMetadata(file: Pick<WeightFile, "name" | "metadata">): LayerFormat[] {
  const text = Object.hasOwn(file.metadata, FORMATS_OF_LAYERS) ? file.metadata[FORMATS_OF_LAYERS]! : undefined;
  if (text === undefined) return [];
  if (text.length > MOST_METADATA)
    throw invalid(file.name, `${FORMATS_OF_LAYERS} of at most ${MOST_METADATA} characters`, `${text.length}`);
  const { layers } = objectIn(file, text, FORMATS_OF_LAYERS);
  if (!isPlainObject(layers)) throw invalid(file.name, `layers in ${FORMATS_OF_LAYERS}`, describe(layers));
  return Object.entries(layers).map(([layer, settings]) => ({
    key: `${layer}.${FORMAT}`,
    from: quotedName(`${FORMATS_OF_LAYERS} of ${layer}`),
    settings: isPlainObject(settings) ? settings : { format: settings },
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
  throw invalid(file.name, `${quotedName(key)} to be a JSON object`, "text that is not JSON");
}

/** Weights of a file by key, in which packed ones take the place of their tensors. */
type Weights = Map<string, StoredWeight>;

/** End of the key of a layer's second factor, in the place of `weight`. */
const SECOND_FACTOR = "weight_scale_2";
/** Values that share a scale. */
const GROUP = { mxfp8: 32, nvfp4: 16 } as const;

/** Puts a weight with scales in blocks in the place of its tensors. Throws model.invalid if these do not fit each other. */
function packScaled(weights: Weights, weight: StoredWeight, format: "mxfp8" | "nvfp4", name: string): void {
  const { key, factor: scales } = weight;
  const { factor: _, ...single } = weight;
  const [rows = 0, stored = 0] = weight.shape;
  const columns = format === "nvfp4" ? 2 * stored : stored;
  const [type, ofScales] = format === "nvfp4" ? (["U8", "F8_E4M3"] as const) : (["F8_E4M3", "U8"] as const);
  if (weight.dtype !== type || weight.shape.length !== 2 || columns % GROUP[format] !== 0)
    throw invalid(name, `${quotedName(key)} of ${type} with rows of a multiple of ${GROUP[format]}`, weight.dtype);
  const count = Math.ceil(rows / 128) * 128 * Math.ceil(columns / GROUP[format] / 4) * 4;
  if (scales?.dtype !== ofScales || valuesIn(scales.shape) !== count)
    throw invalid(name, `${count} scales of ${quotedName(key)} in ${ofScales}`, told(scales));
  const shape = [rows, columns];
  if (format === "mxfp8") {
    weights.set(key, { ...single, dtype: "MXFP8", shape, packing: { format: "MXFP8", scales } });
    return;
  }
  const second = key.replace(/weight$/, SECOND_FACTOR);
  const factor = weights.get(second);
  if (factor?.dtype !== "F32" || valuesIn(factor.shape) !== 1)
    throw invalid(name, `${quotedName(second)} of one number in F32`, told(factor));
  weights.delete(second);
  weights.set(key, { ...single, dtype: "NVFP4", shape, packing: { format: "NVFP4", scales, factor } });
}

/** Rests of keys behind that of a weight of bitsandbytes. */
const NF4_STATE = ".quant_state.bitsandbytes__nf4";
const LARGEST = ".absmax";
const TABLE = ".quant_map";
const NESTED_LARGEST = ".nested_absmax";
const NESTED_TABLE = ".nested_quant_map";

/**
 * Puts a weight of NF4 in the place of its tensors; `state` is from the file. Throws model.invalid if these do
 * not fit each other, model.unsupported for other types.
 */
function packNf4(weights: Weights, weight: StoredWeight, state: Readonly<Record<string, unknown>>, name: string): void {
  const { key } = weight;
  const { quant_type: type, blocksize: group, shape } = state;
  if (type !== "nf4") throw unsupported(name, `${quotedName(key)} of the type nf4`, describe(type));
  const sides = Array.isArray(shape) ? shape.map(wholeNumber) : [];
  const values = sides.reduce<number>((product, side) => product * (side ?? Number.NaN), 1);
  const size = wholeNumber(group) ?? 0;
  if (sides.length === 0 || size < 2 || size % 2 !== 0 || !(values % size === 0) || weight.dtype !== "U8")
    throw invalid(
      name,
      `${quotedName(key)} of U8, with a shape that its groups divide`,
      JSON.stringify(state).slice(0, 200),
    );
  if (valuesIn(weight.shape) !== values / 2)
    throw invalid(name, `${values / 2} bytes of ${quotedName(key)}`, `${valuesIn(weight.shape)}`);
  const take = (rest: string, dtype: string, count: number): StoredWeight => {
    const tensor = weights.get(key + rest);
    if (tensor?.dtype !== dtype || valuesIn(tensor.shape) !== count)
      throw invalid(name, `${quotedName(key + rest)} of ${count} values in ${dtype}`, told(tensor));
    weights.delete(key + rest);
    return tensor;
  };
  const isNested = weights.has(key + NESTED_LARGEST);
  const table = take(TABLE, "F32", 16);
  const largest = take(LARGEST, isNested ? "U8" : "F32", values / size);
  const packing: Packing = { format: "NF4", table, largest, group: size, nested: isNested ? nested() : undefined };
  weights.set(key, { ...weight, dtype: "NF4", shape: sides as number[], packing });

  function nested(): NonNullable<(Packing & { format: "NF4" })["nested"]> {
    const own = wholeNumber(state.nested_blocksize);
    const offset = numberIn(state.nested_offset);
    if (own === undefined || own < 1 || offset === undefined)
      throw invalid(
        name,
        `${quotedName(key)} with nested_blocksize and nested_offset`,
        JSON.stringify(state).slice(0, 200),
      );
    return {
      table: take(NESTED_TABLE, "F32", 256),
      largest: take(NESTED_LARGEST, "F32", Math.ceil(values / size / own)),
      group: own,
      offset,
    };
  }
}

/** A number of JSON, which the lossless reader keeps as text. */
function numberIn(value: unknown): number | undefined {
  const number = typeof value === "number" || value instanceof NumberLiteral ? Number(value) : Number.NaN;
  return Number.isFinite(number) ? number : undefined;
}

function wholeNumber(value: unknown): number | undefined {
  const number = numberIn(value);
  return number !== undefined && Number.isSafeInteger(number) && number >= 1 ? number : undefined;
}

const told = (tensor: StoredWeight | undefined): string =>
  tensor === undefined ? "none" : `${tensor.dtype} [${tensor.shape.join(", ")}]`;
