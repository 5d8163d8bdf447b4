import { loadNative } from "../../../../native/load.js";
import type { StoredWeight } from "../stored.js";
import { BLOCK_TYPES, isBlockType } from "./types.js";

/** Turns some units of a weight into outputs; `first` is the number of the first one. */
type Convert = (bytes: Uint8Array, first: number, outputs: readonly Uint8Array[]) => void;

/** Forms of a packed weight: float32, or codes with their scales, and offsets where its type has these. */
export type Form = "floats" | "codes";

/** A way to turn the bytes of a weight into other ones, unit by unit. */
export interface Conversion {
  readonly weight: StoredWeight;
  readonly units: number;
  /** Bytes of a unit in the file. */
  readonly bytes: number;
  /** Bytes of a unit in each output. */
  readonly outputs: readonly number[];
  /** Reads what belongs to the weight; `read` gives the bytes of a tensor. */
  open(read: (tensor: StoredWeight) => Promise<Uint8Array>): Promise<Convert>;
}

const FLOAT_BYTES = 4;

export const conversionOf = (weight: StoredWeight, form: Form): Conversion =>
  form === "floats" ? toFloats(weight) : toCodes(weight);

function toFloats(weight: StoredWeight): Conversion {
  const { dtype, shape } = weight;
  const values = shape.reduce((product, side) => product * side, 1);
  if (isBlockType(dtype)) {
    const { id, values: count, bytes } = BLOCK_TYPES[dtype];
    const convert: Convert = (blocks, _, [out]) => loadNative().unpackBlocks(floats(out!), blocks, id);
    return { weight, units: values / count, bytes, outputs: [FLOAT_BYTES * count], open: async () => convert };
  }
  throw new Error(`${dtype} has no conversion`);
}

function toCodes(weight: StoredWeight): Conversion {
  const { dtype, shape } = weight;
  const values = shape.reduce((product, side) => product * side, 1);
  if (isBlockType(dtype)) {
    const { id, values: count, bytes, group, bits, ...type } = BLOCK_TYPES[dtype];
    const groups = FLOAT_BYTES * (count / group);
    const convert: Convert = (blocks, _, [codes, scales, offsets]) =>
      loadNative().repackBlocks(codes!, floats(scales!), floats(offsets ?? new Uint8Array()), blocks, id);
    const outputs = [(count * bits) / 8, groups, ...("hasOffsets" in type ? [groups] : [])];
    return { weight, units: values / count, bytes, outputs, open: async () => convert };
  }
  throw new Error(`${dtype} has no conversion`);
}

const floats = ({ buffer, byteOffset, byteLength }: Uint8Array): Float32Array =>
  new Float32Array(buffer, byteOffset, byteLength / FLOAT_BYTES);
