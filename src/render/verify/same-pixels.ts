import { pixelHash } from "../../io/png/pixel-hash.js";
import type { DecodedImage } from "../../io/png/png.js";
import type { RawImage } from "../../io/raw-image.js";

/**
 * Whether a file shows the picture of that hash. A program that packs PNG files more tightly stores grey pictures as
 * grey and drops an alpha that hides nothing: these show the same.
 */
export function hasPixels(image: DecodedImage, hash: string): boolean {
  const { data, channels, width, height } = image;
  // only 8-bit pictures are saved
  if (!(data instanceof Uint8Array)) return false;
  for (let wider = channels; wider <= 4; wider++) {
    const pixels = wider === channels ? data : widen(data, channels, wider);
    if (pixels === undefined) continue;
    if (pixelHash({ data: pixels, width, height, channels: wider }) === hash) return true;
  }
  return false;
}

/**
 * Largest difference of a sample between a file's picture and another one, 0 to 255; undefined where their sizes, depths or
 * colours differ. Grey counts as three equal samples, as in `hasPixels`.
 */
export function largestDifference(
  { data, channels, width, height }: DecodedImage,
  other: RawImage,
): number | undefined {
  if (!(data instanceof Uint8Array) || width !== other.width || height !== other.height) return undefined;
  if (other.channels < channels) return undefined;
  const pixels = other.channels === channels ? data : widen(data, channels, other.channels);
  return pixels?.reduce((largest, value, i) => Math.max(largest, Math.abs(value - other.data[i]!)), 0);
}

/** Grey becomes three equal samples, an alpha that is not there 255; undefined where there is more to lose. */
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
