import { writeFileSync } from "node:fs";

/** A tensor as a GGUF file has it: type by the format's number, sides as in PyTorch. */
export interface GgufTensor {
  readonly type: number;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
  /** Offset in the data; behind the tensor before by default. */
  readonly offset?: number;
}

/** A value with its type, by the format's number. */
export type GgufValue = readonly [type: number, bytes: Uint8Array];

export const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};

export const u64 = (value: number | bigint): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
};

/** Text with its length before it. */
export const text = (value: string): Buffer => Buffer.concat([u64(Buffer.byteLength(value)), Buffer.from(value)]);

export const textValue = (value: string): GgufValue => [8, text(value)];

export interface GgufContents {
  readonly version?: number;
  readonly pairs?: Readonly<Record<string, GgufValue>>;
  readonly tensors?: Readonly<Record<string, GgufTensor>>;
}

/** Bytes of a GGUF file. */
export function ggufBytes({ version = 3, pairs = {}, tensors = {} }: GgufContents, alignment = 32): Buffer {
  const header: Uint8Array[] = [Buffer.from("GGUF"), u32(version)];
  header.push(u64(Object.keys(tensors).length), u64(Object.keys(pairs).length));
  for (const [key, [type, bytes]] of Object.entries(pairs)) header.push(text(key), u32(type), bytes);
  const data: Uint8Array[] = [];
  let end = 0;
  const padding = (length: number): Buffer => Buffer.alloc((alignment - (length % alignment)) % alignment);
  for (const [name, { type, shape, bytes, offset = end }] of Object.entries(tensors)) {
    header.push(text(name), u32(shape.length), ...shape.toReversed().map(u64), u32(type), u64(offset));
    const padded = Buffer.concat([bytes, padding(bytes.length)]);
    data.push(padded);
    end += padded.length;
  }
  const head = Buffer.concat(header);
  return Buffer.concat([head, padding(head.length), ...data]);
}

/** Writes a GGUF file and returns its path. */
export function writeGguf(path: string, contents: GgufContents): string {
  writeFileSync(path, ggufBytes(contents));
  return path;
}
