/** A type of weights in blocks, and the codes that MatMulNBits takes for them. */
export interface BlockType {
  /** Its number in GGUF files. */
  readonly id: number;
  /** Values of a block, and its bytes. */
  readonly values: number;
  readonly bytes: number;
  /** Values that share a scale. */
  readonly group: 16 | 32;
  /** Bits of a number: its code has four of them, and another one those below. */
  readonly bits: 4 | 8;
  /** Number whose codes are the middle ones, where no offset takes that up. */
  readonly centre?: number;
  /** Whether each group has an offset too. */
  readonly hasOffsets?: boolean;
}

/** Types of weights in blocks, by the names that GGUF gives them. */
export const BLOCK_TYPES = {
  Q4_0: { id: 2, values: 32, bytes: 18, group: 32, bits: 4 },
  Q4_1: { id: 3, values: 32, bytes: 20, group: 32, bits: 4, hasOffsets: true },
  Q5_0: { id: 6, values: 32, bytes: 22, group: 32, bits: 8 },
  Q5_1: { id: 7, values: 32, bytes: 24, group: 32, bits: 8, hasOffsets: true },
  Q8_0: { id: 8, values: 32, bytes: 34, group: 32, bits: 8, centre: 8 },
  Q2_K: { id: 10, values: 256, bytes: 84, group: 16, bits: 4, hasOffsets: true },
  Q3_K: { id: 11, values: 256, bytes: 110, group: 16, bits: 4 },
  Q4_K: { id: 12, values: 256, bytes: 144, group: 32, bits: 4, hasOffsets: true },
  Q5_K: { id: 13, values: 256, bytes: 176, group: 32, bits: 8, hasOffsets: true },
  Q6_K: { id: 14, values: 256, bytes: 210, group: 16, bits: 8 },
  IQ4_NL: { id: 20, values: 32, bytes: 18, group: 32, bits: 8 },
  IQ4_XS: { id: 23, values: 256, bytes: 136, group: 32, bits: 8 },
} as const satisfies Readonly<Record<string, BlockType>>;

/** Types of weights whose scales lie beside them in a .safetensors file. */
const SCALED_TYPES = ["MXFP8", "NVFP4", "NF4"] as const;

export type PackedType = keyof typeof BLOCK_TYPES | (typeof SCALED_TYPES)[number];

export const isBlockType = (type: string): type is keyof typeof BLOCK_TYPES => Object.hasOwn(BLOCK_TYPES, type);

export const isPacked = (type: string): type is PackedType =>
  isBlockType(type) || (SCALED_TYPES as readonly string[]).includes(type);
