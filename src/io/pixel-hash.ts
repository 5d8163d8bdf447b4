import { loadNative } from "../native/load.js";
import type { RawImage } from "./png.js";

/**
 * "blake3:…" of width, height and channels, 32 bits big-endian each, and the samples in rows from the top: equal for
 * equal pictures, whatever the file around them.
 */
export function pixelHash({ width, height, channels, data }: RawImage): string {
  // at once: a sixth of a millisecond for a megapixel, less than the way to another thread
  return `blake3:${loadNative().pixelHash(data, width, height, channels)}`;
}
