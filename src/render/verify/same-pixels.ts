import { type DecodedImage, pixelHash, toRawImage } from "../../io/png/png.js";
import type { RawImage } from "../../io/png/raw-image.js";

/**
 * Whether a file shows the picture of that hash. A program that packs PNG files more tightly stores grey pictures as
 * grey and drops an alpha that hides nothing; WebP and AVIF files have no grey: these show the same.
 */
export function hasPixels(image: Pixels, hash: string): boolean {
  const { data, channels, width, height } = image;
  if (!(data instanceof Uint8Array)) return pixelHash(toRawImage(image)) === hash;
  for (let other = 1; other <= 4; other++) {
    const pixels =
      other === channels ? data : other > channels ? widen(data, channels, other) : narrow(data, channels, other);
    if (pixels === undefined) continue;
    if (pixelHash({ data: pixels, width, height, channels: other }) === hash) return true;
  }
  return false;
}

/** Pixels of a file. */
type Pixels = Pick<DecodedImage, "data" | "channels" | "width" | "height">;

/**
 * Largest difference of a sample between a file's picture and another one, 0 to 255; undefined if their sizes, depths or
 * colours differ. Grey counts as three equal samples, as in `hasPixels`.
 */
export function largestDifference({ data, channels, width, height }: Pixels, other: RawImage): number | undefined {
  if (!(data instanceof Uint8Array) || other.bitDepth === 16 || width !== other.width || height !== other.height)
    return undefined;
  if (other.channels < channels) return undefined;
  const pixels = other.channels === channels ? data : widen(data, channels, other.channels);
  return pixels?.reduce((largest, value, i) => Math.max(largest, Math.abs(value - other.data[i]!)), 0);
}

/** Three equal samples become grey; undefined if they differ. */
function narrow(data: Uint8Array, from: number, to: number): Uint8Array | undefined {
  if (from !== to + 2) return undefined;
  const out = new Uint8Array((data.length / from) * to);
  for (let at = 0, pixel = 0; at < data.length; at += from, pixel++) {
    if (data[at] !== data[at + 1] || data[at] !== data[at + 2]) return undefined;
    out[pixel * to] = data[at]!;
    if (to === 2) out[pixel * to + 1] = data[at + 3]!;
  }
  return out;
}

/** Grey becomes three equal samples, a missing alpha 255; undefined if more would be lost. */
function widen(data: Uint8Array, from: number, to: number): Uint8Array | undefined {
  const hasAlpha = from % 2 === 0;
  const getsAlpha = to % 2 === 0;
  if (hasAlpha && !getsAlpha) return undefined;
  const count = data.length / from;
  const out = new Uint8Array(count * to).fill(255);
  const [own, target] = [hasAlpha ? from - 1 : from, getsAlpha ? to - 1 : to];
  for (let pixel = 0; pixel < count; pixel++) {
    for (let c = 0; c < target; c++) out[pixel * to + c] = data[pixel * from + Math.min(c, own - 1)]!;
    if (hasAlpha) out[pixel * to + to - 1] = data[pixel * from + from - 1]!;
  }
  return out;
}
