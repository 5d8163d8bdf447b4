import { decodePicture } from "../../io/pictures/decode.js";
import { pictureKind } from "../../io/pictures/format.js";
import { type DecodedImage, decodePng } from "../../io/png/png.js";
import type { RawImage } from "../../io/png/raw-image.js";
import { readRegular } from "../../io/regular-file.js";
import type { Colour } from "./canvas.js";

/** Larger files are not read. */
const MAX_FILE_BYTES = 2 ** 30;

/** Shares of the source pixels in the output: `at` gets `near` of one, `at + 1` gets `far` of it. */
interface Shares {
  readonly at: Uint32Array;
  readonly near: Float64Array;
  readonly far: Float64Array;
}

/** Largest width and height. */
export interface Box {
  readonly width: number;
  readonly height: number;
}

/**
 * A picture in RGB that fits a box, or whose longer side is at most a number, each pixel the mean of the area it stands
 * for. A smaller one keeps its size. Transparent parts show `ground`. Fails as decodePicture. @internal
 */
export async function thumbnail(bytes: Uint8Array, box: number | Box, ground: Colour): Promise<RawImage> {
  const image = pictureKind(bytes) === "png" ? await decodePng(bytes) : await decodePicture(bytes, 1);
  const most = typeof box === "number" ? { width: box, height: box } : box;
  const scale = Math.min(1, most.width / image.width, most.height / image.height);
  const width = Math.max(1, Math.round(image.width * scale));
  const height = Math.max(1, Math.round(image.height * scale));
  return { data: shrink(image, width, height, ground), width, height, channels: 3 };
}

/** Thumbnail of a file; undefined if it cannot be read: another program may have moved or replaced it. */
export async function fileThumbnail(path: string, box: number | Box, ground: Colour): Promise<RawImage | undefined> {
  try {
    const bytes = await readRegular(path, MAX_FILE_BYTES);
    return bytes && (await thumbnail(bytes, box, ground));
  } catch {
    return undefined;
  }
}

function shrink(image: Omit<DecodedImage, "text">, width: number, height: number, ground: Colour): Uint8Array {
  const across = sharesOf(image.width, width);
  const down = sharesOf(image.height, height);
  const row = new Float64Array((width + 1) * 3);
  // one more than there are: the last source row has no share in it
  const sums = new Float64Array((height + 1) * width * 3);
  for (let y = 0; y < image.height; y++) {
    shrinkRow(image, y, across, ground, row);
    const start = down.at[y]! * width * 3;
    const [near, far] = [down.near[y]!, down.far[y]!];
    for (let i = 0; i < width * 3; i++) sums[start + i] = sums[start + i]! + row[i]! * near;
    if (far === 0) continue;
    const below = start + width * 3;
    for (let i = 0; i < width * 3; i++) sums[below + i] = sums[below + i]! + row[i]! * far;
  }
  // its assignment rounds
  return new Uint8Array(new Uint8ClampedArray(sums.subarray(0, width * height * 3)).buffer);
}

function shrinkRow(
  image: Omit<DecodedImage, "text">,
  y: number,
  across: Shares,
  ground: Colour,
  row: Float64Array,
): void {
  const { data, width, channels } = image;
  const [green, blue] = channels >= 3 ? [1, 2] : [0, 0];
  const hasAlpha = channels === 2 || channels === 4;
  const full = image.bitDepth === 16 ? 65535 : 255;
  const unit = 255 / full;
  const [groundRed, groundGreen, groundBlue] = ground;
  const { at, near, far } = across;
  row.fill(0);
  for (let x = 0, from = y * width * channels; x < width; x++, from += channels) {
    let red = data[from]! * unit;
    let greenish = data[from + green]! * unit;
    let bluish = data[from + blue]! * unit;
    if (hasAlpha) {
      const opacity = data[from + channels - 1]! / full;
      red = red * opacity + groundRed * (1 - opacity);
      greenish = greenish * opacity + groundGreen * (1 - opacity);
      bluish = bluish * opacity + groundBlue * (1 - opacity);
    }
    const to = at[x]! * 3;
    const here = near[x]!;
    row[to] = row[to]! + red * here;
    row[to + 1] = row[to + 1]! + greenish * here;
    row[to + 2] = row[to + 2]! + bluish * here;
    const beyond = far[x]!;
    if (beyond === 0) continue;
    row[to + 3] = row[to + 3]! + red * beyond;
    row[to + 4] = row[to + 4]! + greenish * beyond;
    row[to + 5] = row[to + 5]! + bluish * beyond;
  }
}

function sharesOf(from: number, to: number): Shares {
  const shares = { at: new Uint32Array(from), near: new Float64Array(from), far: new Float64Array(from) };
  const size = to / from;
  for (let i = 0; i < from; i++) {
    const first = Math.floor((i * to) / from);
    const beyond = ((i + 1) * to) / from - (first + 1);
    shares.at[i] = first;
    // a share below a rounding error does not count
    shares.far[i] = beyond > 1e-9 ? beyond : 0;
    shares.near[i] = size - shares.far[i]!;
  }
  return shares;
}
