import { YieldTimer } from "../../base/abort.js";
import { bufferOf } from "../../base/bytes.js";
import { LatentkitError } from "../../base/errors.js";
import type { DecodedFrames } from "../png/png.js";

/** Header of the file; a header of its own length follows, which begins with that. */
const FILE_HEADER_BYTES = 14;
/** The oldest header, of OS/2, and that of its second version, whose compressions have other numbers. */
const CORE_HEADER_BYTES = 12;
const OS2_HEADER_BYTES = 64;
const HEADER_BYTES: ReadonlySet<number> = new Set([CORE_HEADER_BYTES, 40, 52, 56, OS2_HEADER_BYTES, 108, 124]);
/** Headers from this length on have a mask of alpha. */
const ALPHA_HEADER_BYTES = 56;
/** Place of the masks: in the header, or behind the shorter one. */
const MASKS_AT = 54;

/** Kinds of compression, by their numbers. */
const PLAIN = 0;
const RUNS_OF_8 = 1;
const RUNS_OF_4 = 2;
const MASKED = 3;

/** Bits of red, green, blue and alpha in a pixel. */
type Masks = readonly number[];

const MASKS_OF: Readonly<Record<number, Masks>> = {
  16: [0x7c00, 0x3e0, 0x1f],
  24: [0xff0000, 0xff00, 0xff],
  32: [0xff0000, 0xff00, 0xff],
};

/** Pixels for each byte of runs at most: what a file declares is allocated. */
const MOST_PIXELS_A_BYTE = 2 ** 14;

interface Header {
  readonly width: number;
  readonly height: number;
  readonly isTopDown: boolean;
  readonly bits: number;
  readonly compression: number;
  readonly masks: Masks;
  /** Red, green and blue of 256 colours; those that the file lacks are black. */
  readonly palette: Uint8Array;
  /** Place of the pixels. */
  readonly at: number;
}

/**
 * Decodes a BMP file to 8-bit RGB, or RGBA if it has a mask of alpha: palettes of 1, 4 and 8 bits, runs of 4 and 8, and
 * pixels of 16, 24 and 32 bits. Fails with picture.invalid, and with picture.too-large before anything is allocated.
 */
export async function decodeBmp(file: Uint8Array, maxPixels: number): Promise<DecodedFrames> {
  const bytes = bufferOf(file);
  const header = headerOf(bytes, maxPixels);
  const { width, height, bits, palette } = header;
  const channels = header.masks.length === 4 ? 4 : 3;
  const isRuns = header.compression === RUNS_OF_8 || header.compression === RUNS_OF_4;
  const stride = isRuns ? width : Math.ceil((width * bits) / 32) * 4;
  const timer = new YieldTimer();
  const stored = bytes.subarray(header.at);
  const rows = isRuns ? await indicesOf(stored, header, timer) : stored;
  // the last row may lack its padding
  if (rows.length < stride * (height - 1) + (isRuns ? width : Math.ceil((width * bits) / 8)))
    throw damaged("ends early");
  const data = new Uint8Array(width * height * channels);
  for (let y = 0; y < height; y++) {
    // up to 2^27 pixels on the thread of the event loop
    if (timer.isDue) await timer.yield();
    const row = rows.subarray(y * stride, (y + 1) * stride);
    const first = (header.isTopDown ? y : height - 1 - y) * width * channels;
    const out = data.subarray(first, first + width * channels);
    if (bits > 8) readColours(row, bits / 8, header.masks, out);
    else readIndices(row, isRuns ? 8 : bits, palette, out);
  }
  return { width, height, channels, bitDepth: 8, frames: 1, isKeyed: false, data };
}

function headerOf(bytes: Buffer, maxPixels: number): Header {
  const length = bytes.length < FILE_HEADER_BYTES + 4 ? 0 : bytes.readUInt32LE(FILE_HEADER_BYTES);
  if (!HEADER_BYTES.has(length)) throw damaged("has an unknown header");
  const end = FILE_HEADER_BYTES + length;
  if (bytes.length < end) throw damaged("ends early");
  const isCore = length === CORE_HEADER_BYTES;
  const width = isCore ? bytes.readUInt16LE(18) : bytes.readInt32LE(18);
  const rows = isCore ? bytes.readUInt16LE(20) : bytes.readInt32LE(22);
  const bits = bytes.readUInt16LE(isCore ? 24 : 28);
  const compression = isCore ? PLAIN : bytes.readUInt32LE(30);
  const height = Math.abs(rows);
  if (width < 1 || height < 1) throw damaged("has no pixels");
  if (width * height > maxPixels) {
    const message = `Picture: expected at most ${maxPixels} pixels, received ${width} x ${height}.`;
    throw new LatentkitError("picture.too-large", message);
  }
  const isTopDown = rows < 0;
  if (!isKnown(bits, compression, isTopDown) || (compression === MASKED && length === OS2_HEADER_BYTES))
    throw damaged(`has ${bits} bits a pixel with compression ${compression}, which are not read`);
  const isMasked = compression === MASKED;
  const masks = isMasked ? readMasks(bytes, length >= ALPHA_HEADER_BYTES, bits) : (MASKS_OF[bits] ?? []);
  const count = isCore ? 0 : bytes.readUInt32LE(46);
  const from = isMasked ? Math.max(end, MASKS_AT + 12) : end;
  const { palette, after } = readPalette(bytes, from, isCore ? 3 : 4, bits > 8 ? 0 : count || 2 ** bits);
  return { width, height, isTopDown, bits, compression, masks, palette, at: bytes.readUInt32LE(10) || after };
}

function isKnown(bits: number, compression: number, isTopDown: boolean): boolean {
  if (compression === PLAIN) return bits === 1 || bits === 4 || bits === 8 || MASKS_OF[bits] !== undefined;
  if (compression === MASKED) return MASKS_OF[bits] !== undefined;
  return !isTopDown && bits === (compression === RUNS_OF_8 ? 8 : compression === RUNS_OF_4 ? 4 : -1);
}

function readMasks(bytes: Buffer, hasAlpha: boolean, bits: number): Masks {
  if (bytes.length < MASKS_AT + (hasAlpha ? 16 : 12)) throw damaged("ends early");
  const masks = [0, 4, 8, ...(hasAlpha ? [12] : [])].map((at) => bytes.readUInt32LE(MASKS_AT + at));
  // as Pillow reads them
  if (masks.every((mask) => mask === 0)) return bits === 32 ? [...MASKS_OF[32]!, 0xff000000] : MASKS_OF[bits]!;
  if (masks[3] === 0) masks.pop();
  return masks;
}

function readPalette(bytes: Buffer, from: number, size: number, count: number) {
  const palette = new Uint8Array(3 * 256);
  for (let entry = 0; entry < Math.min(count, 256); entry++) {
    const at = from + entry * size;
    for (let k = 0; k < 3; k++) palette[3 * entry + k] = bytes[at + 2 - k] ?? 0;
  }
  return { palette, after: from + size * count };
}

/** Reads pixels of whole bytes; each part of its bits becomes 0 … 255, rounded down. */
function readColours(row: Uint8Array, size: number, masks: Masks, out: Uint8Array): void {
  const parts = masks.map((mask) => {
    const shift = mask === 0 ? 0 : 31 - Math.clz32(mask & -mask);
    return { shift, most: mask >>> shift };
  });
  for (let at = 0, to = 0; to < out.length; at += size) {
    let pixel = row[at]! | (row[at + 1]! << 8);
    if (size > 2) pixel |= row[at + 2]! << 16;
    if (size > 3) pixel |= row[at + 3]! << 24;
    for (const { shift, most } of parts) {
      const part = ((pixel >>> shift) & most) >>> 0;
      out[to++] = most === 255 ? part : most === 0 ? 0 : (part * 255) / most;
    }
  }
}

/** Reads pixels of 1, 4 or 8 bits, the first in the highest bits. */
function readIndices(row: Uint8Array, bits: number, palette: Uint8Array, out: Uint8Array): void {
  const most = 2 ** bits - 1;
  for (let bit = 0, to = 0; to < out.length; bit += bits, to += 3) {
    const entry = 3 * ((row[bit >> 3]! >> (8 - bits - (bit & 7))) & most);
    out[to] = palette[entry]!;
    out[to + 1] = palette[entry + 1]!;
    out[to + 2] = palette[entry + 2]!;
  }
}

/** Expands runs to indices, one a byte; pixels that they pass over are 0. What leaves a row is dropped. */
async function indicesOf(runs: Buffer, { width, height, compression }: Header, timer: YieldTimer): Promise<Uint8Array> {
  if (width * height > runs.length * MOST_PIXELS_A_BYTE) throw damaged("ends early");
  const out = new Uint8Array(width * height);
  const isHalf = compression === RUNS_OF_4;
  let [x, y] = [0, 0];
  const put = (index: number): void => {
    if (x < width) out[y * width + x++] = index;
  };
  for (let at = 0, step = 0; at + 1 < runs.length && y < height; step++) {
    if (step % 1024 === 0 && timer.isDue) await timer.yield();
    const [count, value] = [runs[at++]!, runs[at++]!];
    if (count > 0) {
      for (let i = 0; i < count; i++) put(isHalf ? halfOf(value, i) : value);
    } else if (value === 0) {
      [x, y] = [0, y + 1];
    } else if (value === 1) {
      return out;
    } else if (value === 2) {
      x += runs[at++] ?? 0;
      y += runs[at++] ?? 0;
    } else {
      const length = isHalf ? Math.ceil(value / 2) : value;
      if (at + length > runs.length) throw damaged("ends early");
      for (let i = 0; i < value; i++) put(isHalf ? halfOf(runs[at + (i >> 1)]!, i) : runs[at + i]!);
      // to an even number of bytes
      at += length + (length % 2);
    }
  }
  // without an end, all rows but the last have to be complete
  if (y < height - 1 || (y === height - 1 && x < width)) throw damaged("ends early");
  return out;
}

/** The higher four bits for an even position, else the lower. */
const halfOf = (byte: number, position: number): number => (position % 2 === 0 ? byte >> 4 : byte & 15);

const damaged = (reason: string): LatentkitError =>
  new LatentkitError("picture.invalid", `Picture: the BMP file ${reason}.`);
