import { deflateSync } from "node:zlib";
import { assemble } from "./png-file.js";

type Chunk = readonly [string, Uint8Array];

/** Numbers of an fcTL chunk; what is absent is the whole picture, left as it is. */
export interface FrameControl {
  width?: number;
  height?: number;
  x?: number;
  y?: number;
  /** 0 leave, 1 background, 2 previous. */
  disposal?: number;
  /** 0 source, 1 over. */
  blend?: number;
}

export interface ApngPlan {
  width: number;
  height: number;
  /** 8 or 16. */
  depth?: number;
  colour: number;
  palette?: readonly number[];
  transparency?: readonly number[];
  /** Chunks behind the header. */
  extra?: readonly Chunk[];
  /** Samples of each frame as bytes; a first one without control lies in front of the animation. */
  frames: readonly { control?: FrameControl; bytes: readonly number[] }[];
}

const SAMPLES: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };

/** 32-bit big-endian numbers. */
export const words = (...values: number[]): Buffer => {
  const out = Buffer.alloc(4 * values.length);
  values.forEach((value, i) => {
    out.writeUInt32BE(value, 4 * i);
  });
  return out;
};

/** The chunks of an animated PNG, all right. */
export function apngChunks(plan: ApngPlan): Chunk[] {
  const { width, height, depth = 8, colour, palette, transparency, extra = [], frames } = plan;
  const chunks: Chunk[] = [["IHDR", Buffer.concat([words(width, height), Buffer.from([depth, colour, 0, 0, 0])])]];
  chunks.push(...extra);
  chunks.push(["acTL", words(frames.filter(({ control }) => control !== undefined).length, 0)]);
  if (palette !== undefined) chunks.push(["PLTE", Uint8Array.from(palette)]);
  if (transparency !== undefined) chunks.push(["tRNS", Uint8Array.from(transparency)]);
  let sequence = 0;
  frames.forEach(({ control, bytes }, number) => {
    const box = { width, height, x: 0, y: 0, disposal: 0, blend: 0, ...control };
    const tail = Buffer.from([0, 1, 0, 10, box.disposal, box.blend]);
    if (control !== undefined)
      chunks.push(["fcTL", Buffer.concat([words(sequence++, box.width, box.height, box.x, box.y), tail])]);
    const line = (box.width * SAMPLES[colour]! * depth) / 8;
    const rows = Array.from({ length: box.height }, (_, y) => [0, ...bytes.slice(y * line, (y + 1) * line)]);
    const data = deflateSync(Buffer.from(rows.flat()));
    // two chunks each, with a foreign one between
    const half = data.length >> 1;
    if (number === 0) chunks.push(["IDAT", data.subarray(0, half)], ["IDAT", data.subarray(half)]);
    else {
      chunks.push(["fdAT", Buffer.concat([words(sequence++), data.subarray(0, half)])]);
      chunks.push(["tEXt", Buffer.from("k\0v")]);
      chunks.push(["fdAT", Buffer.concat([words(sequence++), data.subarray(half)])]);
    }
  });
  chunks.push(["IEND", Buffer.alloc(0)]);
  return chunks;
}

export const makeApng = (plan: ApngPlan): Buffer => assemble(apngChunks(plan));

/** An eXIf chunk of one directory with these entries: tag, type, count and the four bytes of the value. */
export function exifChunk(
  entries: readonly (readonly [tag: number, type: number, count: number, value: readonly number[]])[],
  { big = true, offset = 8, prefix = "" } = {},
): Chunk {
  const u16 = (value: number) => (big ? [value >> 8, value & 255] : [value & 255, value >> 8]);
  const u32 = (value: number) => (big ? [...words(value)] : [...words(value)].reverse());
  const body = entries.flatMap(([tag, type, count, value]) => [...u16(tag), ...u16(type), ...u32(count), ...value]);
  const head = [...Buffer.from(prefix + (big ? "MM" : "II"), "latin1"), ...u16(42), ...u32(offset)];
  return ["eXIf", Uint8Array.from([...head, ...u16(entries.length), ...body, 0, 0, 0, 0])];
}
