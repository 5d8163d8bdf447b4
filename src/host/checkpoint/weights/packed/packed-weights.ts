import { randomUUID } from "node:crypto";
import { dirname, join, parse } from "node:path";
import { cacheFolder } from "../../../../base/user-cache.js";
import type { StoredEntry } from "../../../../io/safetensors.js";
import { MICROSOFT, type OnnxGraph, type Value } from "../../onnx/graph.js";
import { product } from "../../onnx/products.js";
import { BLOCK_TYPES, type BlockType, isBlockType, isPacked, type Packing, type StoredWeight } from "../stored.js";
import { type Conversion, conversionOf, type Form, NVFP4_GROUP } from "./conversions.js";

/** A tensor in the file that is made for a session. */
type MadeTensor = StoredEntry & { readonly file: string };

/**
 * A matrix as products with codes of 4 bits take it: its values are scales[group] · (number + centre) + offsets[group] for the
 * number code - 8, with further codes 16 · (code - 8) + low - 8.
 */
export interface Codes {
  readonly group: number;
  readonly codes: MadeTensor;
  readonly scales: MadeTensor;
  readonly lows?: MadeTensor;
  readonly offsets?: MadeTensor;
  readonly centre: number;
}

/** A weight in another form, and the places of its sources. */
interface PlacedWeight {
  readonly weight: StoredWeight;
  readonly form: Form;
  readonly starts: readonly number[];
}

/** Contents of a file that is written before a session is made, as plain data. */
export interface UnpackPlan {
  readonly path: string;
  readonly bytes: number;
  readonly weights: readonly PlacedWeight[];
}

type CodedType = Pick<BlockType, "group" | "bits" | "centre">;

/** Twice the values of floats of 4 bits are whole numbers of 5. */
const NVFP4: CodedType = { bits: 8, group: NVFP4_GROUP };
/** Parts begin at multiples of this, as vectors like it. */
const ALIGNMENT = 64;

// ONNX Runtime's option for weights in memory copies them: 20 s and twice the memory for 600 MB, a mapped file 2 s.
/**
 * Packed weights in the forms that a runtime takes. They lie in a file of their own, which a session maps, so that no second
 * copy of a model is in memory. Tensors get their places as a graph asks for them; `plan` lists what to write.
 */
export class PackedWeights {
  readonly #path: string;
  readonly #weights: PlacedWeight[] = [];
  readonly #floats = new Map<StoredWeight, MadeTensor>();
  readonly #codes = new Map<StoredWeight, Codes>();
  #bytes = 0;

  /** `beside` is a model file: a runtime wants all files on one drive, so that on another than the folder's it is beside it. */
  constructor(beside: string, folder = join(cacheFolder(), "unpacked")) {
    const own = parse(folder).root === parse(beside).root ? folder : dirname(beside);
    this.#path = join(own, `${process.pid}-${randomUUID()}.weights`);
  }

  /** A packed weight as float32, in its own shape. */
  floats(weight: StoredWeight): MadeTensor {
    const known = this.#floats.get(weight);
    if (known !== undefined) return known;
    const [place] = this.#add(weight, "floats");
    const made = { file: this.#path, dtype: "F32", shape: weight.shape, ...place! } as const;
    this.#floats.set(weight, made);
    return made;
  }

  /** A packed matrix as MatMulNBits takes it; undefined for one that it cannot hold in groups of these sizes. */
  codes(weight: StoredWeight, sizes: readonly number[]): Codes | undefined {
    const known = this.#codes.get(weight);
    if (known !== undefined) return known;
    const { dtype, shape } = weight;
    const [rows = 1, columns = 1] = shape;
    if (shape.length !== 2 || !(isBlockType(dtype) || dtype === "NVFP4")) return undefined;
    const { bits, group, ...type }: CodedType = isBlockType(dtype) ? BLOCK_TYPES[dtype] : NVFP4;
    if (!sizes.includes(group) || columns % group !== 0) return undefined;
    const groups = columns / group;
    const made = (place: Place, dtype: "U8" | "F32", sides: readonly number[]): MadeTensor => ({
      file: this.#path,
      dtype,
      shape: sides,
      ...place,
    });
    const [codes, scales, ...further] = this.#add(weight, "codes");
    const lows = bits === 8 ? further.shift() : undefined;
    const [offsets] = further;
    const found: Codes = {
      group,
      codes: made(codes!, "U8", [rows, groups, group / 2]),
      scales: made(scales!, "F32", [rows, groups]),
      lows: lows && made(lows, "U8", [rows, groups, group / 2]),
      offsets: offsets && made(offsets, "F32", [rows, groups]),
      centre: type.centre ?? 0,
    };
    this.#codes.set(weight, found);
    return found;
  }

  /** Largest magnitudes of the groups of a weight of NF4 as float32, if the file has codes for them. */
  largest(weight: StoredWeight): MadeTensor {
    const [place] = this.#add(weight, "largest");
    return { file: this.#path, dtype: "F32", shape: [(place!.to - place!.from) / 4], ...place! };
  }

  /** The file, with all that has been asked for; undefined if nothing has. */
  get plan(): UnpackPlan | undefined {
    return this.#weights.length === 0 ? undefined : { path: this.#path, bytes: this.#bytes, weights: this.#weights };
  }

  #add(weight: StoredWeight, form: Form): Place[] {
    const places = outputBytes(conversionOf(weight, form)).map((bytes) => {
      const from = Math.ceil(this.#bytes / ALIGNMENT) * ALIGNMENT;
      this.#bytes = from + bytes;
      return { from, to: this.#bytes };
    });
    this.#weights.push({ weight, form, starts: places.map(({ from }) => from) });
    return places;
  }
}

/** Bytes of a matrix in the form that a product takes. */
export function codeBytes(weight: StoredWeight): number {
  const isNf4 = weight.packing?.format === "NF4";
  const made = outputBytes(conversionOf(weight, isNf4 ? "largest" : "codes"));
  return made.reduce((sum, bytes) => sum + bytes, isNf4 ? weight.to - weight.from : 0);
}

/** Whether a matrix of that type has a product without its expansion. */
export const staysPacked = ({ dtype, shape }: StoredWeight): boolean =>
  shape.length === 2 && isPacked(dtype) && dtype !== "MXFP8";

interface Place {
  readonly from: number;
  readonly to: number;
}

/** Bytes of each output of a conversion. */
const outputBytes = ({ units, outputs }: Conversion): number[] => outputs.map((bytes) => units * bytes);

// decisions: Eight-bit products are two products of four bits
/** x · Wᵀ on the last axis of x, for a matrix that stays packed; undefined if the target has no such product, or not for this matrix. */
export function packedProduct(
  graph: OnnxGraph,
  packed: PackedWeights,
  weight: StoredWeight,
  x: Value,
): Value | undefined {
  if (!isPacked(weight.dtype)) return undefined;
  const [rows = 1, columns = 1] = weight.shape;
  if (weight.packing?.format === "NF4") return nf4Product(graph, packed, weight, weight.packing, x);
  const found = packed.codes(weight, graph.target.groups ?? []);
  if (found === undefined) return undefined;
  const { group, codes, scales, lows, offsets, centre } = found;
  // accuracy_level 4 would round x to 8 bits
  const attributes = { K: { int: columns }, N: { int: rows }, bits: { int: 4 }, block_size: { int: group } };
  const storedScales = graph.stored(scales);
  const times = (value: Value, tensor: MadeTensor): Value =>
    graph.node("MatMulNBits", [value, graph.stored(tensor), storedScales], attributes, MICROSOFT);
  const add = (a: Value, b: Value): Value => graph.node("Add", [a, b]);
  const scaled = (value: Value, factor: number): Value => graph.node("Mul", [value, graph.floats([factor], [])]);
  // the operator takes 8 bits too, in thirty times the time of 4
  const coded = lows === undefined ? times(x, codes) : add(times(scaled(x, 16), codes), times(x, lows));
  if (offsets === undefined && centre === 0) return coded;
  const sums = sumsOfGroups(graph, x, group, columns / group);
  const [numbers, shares] =
    offsets === undefined ? [scaled(sums, centre), storedScales] : [sums, graph.stored(offsets)];
  const rest = product(graph, numbers, shares, [columns / group, rows]);
  return add(coded, graph.node("Reshape", [rest, graph.node("Shape", [coded])]));
}

/** Sums of the groups of x, [rows, groups], for x of any rank. */
function sumsOfGroups(graph: OnnxGraph, x: Value, group: number, groups: number): Value {
  const apart = graph.node("Reshape", [x, graph.ints([-1, groups, group])]);
  return graph.node("ReduceSum", [apart, graph.ints([2])], { keepdims: { int: 0 } });
}

const NF4_QUANT_TYPE = 1;

/** The same by the operator that takes the file's own bytes. */
function nf4Product(
  graph: OnnxGraph,
  packed: PackedWeights,
  weight: StoredWeight,
  { largest, nested, group }: Packing & { format: "NF4" },
  x: Value,
): Value | undefined {
  const [rows = 1, columns = 1] = weight.shape;
  if (weight.shape.length !== 2 || !graph.target.groups?.includes(group)) return undefined;
  const codes = graph.stored({ ...weight, dtype: "U8", shape: [weight.to - weight.from] });
  const magnitudes = graph.stored(nested === undefined ? largest : packed.largest(weight));
  const attributes = {
    K: { int: columns },
    N: { int: rows },
    block_size: { int: group },
    quant_type: { int: NF4_QUANT_TYPE },
  };
  return graph.node("MatMulBnb4", [x, codes, magnitudes], attributes, MICROSOFT);
}
