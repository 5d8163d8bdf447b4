import { loadNative } from "../../../../native/load.js";
import { BLOCK_TYPES, isBlockType, type Packing, type StoredWeight, valuesIn } from "../stored.js";

/** Turns some units of a weight into outputs; `first` is the number of the first one. */
type Convert = (bytes: Uint8Array, first: number, outputs: readonly Uint8Array[]) => void;

/** Gives the bytes of a tensor. */
type Read = (tensor: StoredWeight) => Promise<Uint8Array>;

/**
 * Forms of a packed weight: float32; codes with their scales, lower codes if it has 8 bits, and offsets if its type has
 * these; for NF4 the largest
 * magnitudes of its groups.
 */
export type Form = "floats" | "codes" | "largest";

/** A way to turn the bytes of a weight into other ones, unit by unit. */
export interface Conversion {
  /** Tensor whose bytes are turned. */
  readonly source: StoredWeight;
  readonly units: number;
  /** Bytes of a unit in the file. */
  readonly bytes: number;
  /** Bytes of a unit in each output. */
  readonly outputs: readonly number[];
  /** Reads the parts that belong to the weight. */
  open(read: Read): Promise<Convert>;
}

type Parts = Omit<Conversion, "source">;

const FLOAT_BYTES = 4;
const NOTHING = new Uint8Array();

/** The conversion of a packed weight to a form that its type has. */
export function conversionOf(weight: StoredWeight, form: Form): Conversion {
  const { packing } = weight;
  if (packing?.format === "NF4" && form === "largest") return { source: packing.largest, ...nf4Largest(packing) };
  return { source: weight, ...partsOf(weight, form) };
}

function partsOf({ dtype, shape, packing }: StoredWeight, form: Form): Parts {
  const values = valuesIn(shape);
  if (isBlockType(dtype)) return form === "floats" ? blockFloats(dtype, values) : blockCodes(dtype, values);
  const [rows = 1, columns = 1] = shape;
  switch (packing?.format) {
    case "MXFP8":
      return mxfp8(packing, rows, columns);
    case "NVFP4":
      return form === "floats" ? nvfp4(packing, rows, columns) : nvfp4Codes(packing, rows, columns);
    case "NF4":
      return nf4(packing, values);
    case undefined:
      throw new Error(`${dtype} is not packed`);
  }
}

type Block = keyof typeof BLOCK_TYPES;

function blockFloats(type: Block, values: number): Parts {
  const { id, values: count, bytes } = BLOCK_TYPES[type];
  const convert: Convert = (blocks, _, [out]) => loadNative().unpackBlocks(floats(out!), blocks, id);
  return { units: values / count, bytes, outputs: [FLOAT_BYTES * count], open: async () => convert };
}

function blockCodes(name: Block, values: number): Parts {
  const { id, values: count, bytes, group, bits, ...type } = BLOCK_TYPES[name];
  const groups = FLOAT_BYTES * (count / group);
  const convert: Convert = (blocks, _, [codes, scales, ...further]) => {
    const lows = bits === 8 ? further.shift()! : NOTHING;
    const offsets = floats(further[0] ?? NOTHING);
    loadNative().repackBlocks(codes!, lows, floats(scales!), offsets, blocks, id);
  };
  const lows = bits === 8 ? [count / 2] : [];
  const outputs = [count / 2, groups, ...lows, ...("hasOffsets" in type ? [groups] : [])];
  return { units: values / count, bytes, outputs, open: async () => convert };
}

/** Units are rows. */
function mxfp8({ scales }: Packing & { format: "MXFP8" }, rows: number, columns: number): Parts {
  return {
    units: rows,
    bytes: columns,
    outputs: [FLOAT_BYTES * columns],
    async open(read) {
      const exponents = await read(scales);
      return (codes, first, [out]) => loadNative().unpackMxfp8(floats(out!), codes, exponents, columns, first);
    },
  };
}

type Nvfp4 = Packing & { format: "NVFP4" };

function nvfp4({ scales, factor }: Nvfp4, rows: number, columns: number): Parts {
  return {
    units: rows,
    bytes: columns / 2,
    outputs: [FLOAT_BYTES * columns],
    async open(read) {
      const [eights, times] = [await read(scales), floats(await read(factor))[0]!];
      return (codes, first, [out]) => loadNative().unpackNvfp4(floats(out!), codes, eights, times, columns, first);
    },
  };
}

/** Values that share a scale. */
export const NVFP4_GROUP = 16;

function nvfp4Codes({ scales, factor }: Nvfp4, rows: number, columns: number): Parts {
  return {
    units: rows,
    bytes: columns / 2,
    outputs: [columns / 2, FLOAT_BYTES * (columns / NVFP4_GROUP), columns / 2],
    async open(read) {
      const [eights, times] = [await read(scales), floats(await read(factor))[0]!];
      return (values, first, [codes, groups, lows]) =>
        loadNative().repackNvfp4(codes!, lows!, floats(groups!), values, eights, times, columns, first);
    },
  };
}

/** Units are groups, which the number of values is a multiple of. */
function nf4(packing: Packing & { format: "NF4" }, values: number): Parts {
  const { table, group } = packing;
  return {
    units: values / group,
    bytes: group / 2,
    outputs: [FLOAT_BYTES * group],
    async open(read) {
      const [codes, largest] = [floats(await read(table)), await largestOf(packing, read)];
      return (bytes, first, [out]) => {
        const own = largest.subarray(first, first + (2 * bytes.length) / group);
        loadNative().unpackNf4(floats(out!), bytes, codes, own, group);
      };
    },
  };
}

/** Units are groups. */
function nf4Largest(packing: Packing & { format: "NF4" }): Parts {
  const { largest } = packing;
  const size = packing.nested === undefined ? FLOAT_BYTES : 1;
  return {
    units: (largest.to - largest.from) / size,
    bytes: size,
    outputs: [FLOAT_BYTES],
    async open(read) {
      const all = await largestOf(packing, read);
      return (bytes, first, [out]) => floats(out!).set(all.subarray(first, first + bytes.length / size));
    },
  };
}

/** Largest magnitudes of groups. */
async function largestOf({ largest, nested }: Packing & { format: "NF4" }, read: Read): Promise<Float32Array> {
  const bytes = await read(largest);
  if (nested === undefined) return floats(bytes);
  const [table, factors] = [floats(await read(nested.table)), floats(await read(nested.largest))];
  const { group, offset } = nested;
  return Float32Array.from(
    bytes,
    (code, i) => Math.fround(table[code]! * factors[Math.floor(i / group)]!) + Math.fround(offset),
  );
}

/** The floats of an array whose memory begins at a multiple of four. */
const floats = ({ buffer, byteOffset, byteLength }: Uint8Array): Float32Array =>
  new Float32Array(buffer, byteOffset, byteLength / FLOAT_BYTES);
