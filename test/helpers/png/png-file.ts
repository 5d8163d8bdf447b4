import { deflateSync } from "node:zlib";

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/** Left, top, step right, step down of Adam7's passes. */
const ADAM7 = [
  [0, 0, 8, 8],
  [4, 0, 8, 8],
  [0, 4, 4, 8],
  [2, 0, 4, 4],
  [0, 2, 2, 4],
  [1, 0, 2, 2],
  [0, 1, 1, 2],
] as const;

/** Content of a PNG file. */
export interface PngPlan {
  width: number;
  height: number;
  /** 1, 2, 4, 8 or 16. */
  depth: number;
  /** 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGBA. */
  colour: number;
  interlaced?: boolean;
  palette?: Uint8Array;
  transparency?: Uint8Array;
  /** A random whole number below n: bytes of the rows, and their filters. */
  random(n: number): number;
}

/** A valid PNG file of random rows with random filters, its data in two chunks. */
export function makePng(plan: PngPlan): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(plan.width, 0);
  header.writeUInt32BE(plan.height, 4);
  header.set([plan.depth, plan.colour, 0, 0, plan.interlaced ? 1 : 0], 8);
  const data = deflateSync(rows(plan));
  const half = data.length >> 1;
  return assemble([
    ["IHDR", header],
    ...(plan.palette ? [["PLTE", plan.palette] as const] : []),
    ...(plan.transparency ? [["tRNS", plan.transparency] as const] : []),
    ["IDAT", data.subarray(0, half)],
    ["IDAT", data.subarray(half)],
    ["IEND", Buffer.alloc(0)],
  ]);
}

/** A file of these chunks, with right lengths and check sums. */
export function assemble(chunks: readonly (readonly [string, Uint8Array])[]): Buffer {
  const parts: Buffer[] = [SIGNATURE];
  for (const [type, data] of chunks) {
    const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
    const frame = Buffer.alloc(8);
    frame.writeUInt32BE(data.length, 0);
    frame.writeUInt32BE(crc32(body), 4);
    parts.push(frame.subarray(0, 4), body, frame.subarray(4));
  }
  return Buffer.concat(parts);
}

function rows({ width, height, depth, colour, interlaced, random }: PngPlan): Buffer {
  const samples = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 }[colour] ?? 1;
  const bytes: number[] = [];
  for (const [x0, y0, dx, dy] of interlaced ? ADAM7 : ([[0, 0, 1, 1]] as const)) {
    const pixels = Math.ceil((width - x0) / dx);
    const count = Math.ceil((height - y0) / dy);
    if (pixels <= 0) continue;
    for (let y = 0; y < count; y++) {
      bytes.push(random(5));
      for (let k = 0; k < Math.ceil((pixels * samples * depth) / 8); k++) bytes.push(random(256));
    }
  }
  return Buffer.from(bytes);
}

function crc32(data: Uint8Array): number {
  let crc = ~0;
  for (const byte of data) {
    crc ^= byte;
    for (let k = 0; k < 8; k++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return ~crc >>> 0;
}
