import { describe, type LatentkitError } from "../../../base/errors.js";
import { NumberLiteral } from "../../../io/json/lossless.js";
import { type Packing, quotedName, type StoredWeight } from "./stored.js";

/** Weights of a file by key, in which packed ones take the place of their tensors. */
type Weights = Map<string, StoredWeight>;

/** Makes the error of a layer: of weights that contradict its format, or of a format that is not known. */
export interface LayerErrors {
  invalid(expected: string, received: string): LatentkitError;
  unsupported(expected: string, received: string): LatentkitError;
}

/** End of the key of a layer's second factor, in the place of `weight`. */
const SECOND_FACTOR = "weight_scale_2";
/** Values that share a scale. */
const GROUP = { mxfp8: 32, nvfp4: 16 } as const;

/** Puts a weight with scales in blocks in the place of its tensors. Throws model.invalid where these do not fit each other. */
export function packScaled(
  weights: Weights,
  weight: StoredWeight,
  format: "mxfp8" | "nvfp4",
  errors: LayerErrors,
): void {
  const { key, factor: scales } = weight;
  const { factor: _, ...single } = weight;
  const [rows = 0, stored = 0] = weight.shape;
  const columns = format === "nvfp4" ? 2 * stored : stored;
  const [type, ofScales] = format === "nvfp4" ? (["U8", "F8_E4M3"] as const) : (["F8_E4M3", "U8"] as const);
  if (weight.dtype !== type || weight.shape.length !== 2 || columns % GROUP[format] !== 0)
    throw errors.invalid(`${quotedName(key)} of ${type} with rows of a multiple of ${GROUP[format]}`, weight.dtype);
  const count = Math.ceil(rows / 128) * 128 * Math.ceil(columns / GROUP[format] / 4) * 4;
  if (scales?.dtype !== ofScales || sizeOf(scales) !== count)
    throw errors.invalid(`${count} scales of ${quotedName(key)} in ${ofScales}`, told(scales));
  const shape = [rows, columns];
  if (format === "mxfp8") {
    weights.set(key, { ...single, dtype: "MXFP8", shape, packing: { format: "MXFP8", scales } });
    return;
  }
  const second = key.replace(/weight$/, SECOND_FACTOR);
  const factor = weights.get(second);
  if (factor?.dtype !== "F32" || sizeOf(factor) !== 1)
    throw errors.invalid(`${quotedName(second)} of one number in F32`, told(factor));
  weights.delete(second);
  weights.set(key, { ...single, dtype: "NVFP4", shape, packing: { format: "NVFP4", scales, factor } });
}

/** Rests of keys behind that of a weight of bitsandbytes. */
export const NF4_STATE = ".quant_state.bitsandbytes__nf4";
const LARGEST = ".absmax";
const TABLE = ".quant_map";
const NESTED_LARGEST = ".nested_absmax";
const NESTED_TABLE = ".nested_quant_map";

/**
 * Puts a weight of NF4 in the place of its tensors, `state` being what the file says of it. Throws model.invalid where these do
 * not fit each other, model.unsupported for other types.
 */
export function packNf4(
  weights: Weights,
  weight: StoredWeight,
  state: Readonly<Record<string, unknown>>,
  errors: LayerErrors,
): void {
  const { key } = weight;
  const { quant_type: type, blocksize: group, shape } = state;
  if (type !== "nf4") throw errors.unsupported(`${quotedName(key)} of the type nf4`, describe(type));
  const sides = Array.isArray(shape) ? shape.map(wholeNumber) : [];
  const values = sides.reduce<number>((product, side) => product * (side ?? Number.NaN), 1);
  const size = wholeNumber(group) ?? 0;
  if (sides.length === 0 || size < 2 || size % 2 !== 0 || !(values % size === 0) || weight.dtype !== "U8")
    throw errors.invalid(
      `${quotedName(key)} of U8, with a shape that its groups divide`,
      JSON.stringify(state).slice(0, 200),
    );
  if (sizeOf(weight) !== values / 2)
    throw errors.invalid(`${values / 2} bytes of ${quotedName(key)}`, `${sizeOf(weight)}`);
  const take = (rest: string, dtype: string, count: number): StoredWeight => {
    const tensor = weights.get(key + rest);
    if (tensor?.dtype !== dtype || sizeOf(tensor) !== count)
      throw errors.invalid(`${quotedName(key + rest)} of ${count} values in ${dtype}`, told(tensor));
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
      throw errors.invalid(
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

const sizeOf = ({ shape }: StoredWeight): number => shape.reduce((product, side) => product * side, 1);

const told = (tensor: StoredWeight | undefined): string =>
  tensor === undefined ? "none" : `${tensor.dtype} [${tensor.shape.join(", ")}]`;
