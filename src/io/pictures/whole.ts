import { extname } from "node:path";
import { isPngEnd, PNG_END_BYTES } from "../png/end.js";

/** Reads `length` bytes of a file from `at` on, fewer where it ends. */
export type ReadPart = (at: number, length: number) => Promise<Buffer>;

/** Number of boxes of an AVIF file that are looked at; there are three or four. */
const MAX_BOXES = 16;
const END_BYTES = 12;

/**
 * Whether a picture that was saved has its end: a power failure may leave less of a file, or zeros in its place. Told by
 * the name's extension; a file of any other is whole.
 */
export async function isWholePicture(name: string, size: number, read: ReadPart): Promise<boolean> {
  return (await CHECKS[extname(name).toLowerCase()]?.(size, read)) ?? true;
}

const CHECKS: Readonly<Record<string, (size: number, read: ReadPart) => Promise<boolean>>> = {
  ".png": async (size, read) => isPngEnd(await read(Math.max(0, size - PNG_END_BYTES), PNG_END_BYTES)),
  ".jpg": async (size, read) => (await read(Math.max(0, size - 2), 2)).equals(Buffer.from([0xff, 0xd9])),
  ".webp": async (size, read) => {
    const head = await read(0, 8);
    return head.length === 8 && head.readUInt32LE(4) + 8 === size && hasEnd(size, read);
  },
  ".avif": async (size, read) => {
    let at = 0;
    for (let box = 0; box < MAX_BOXES && at < size; box++) {
      const head = await read(at, 4);
      if (head.length < 4 || head.readUInt32BE(0) < 8) return false;
      at += head.readUInt32BE(0);
    }
    return at === size && size > 0 && hasEnd(size, read);
  },
};

async function hasEnd(size: number, read: ReadPart): Promise<boolean> {
  const end = await read(Math.max(0, size - END_BYTES), END_BYTES);
  return end.some((byte) => byte !== 0);
}
