import { square } from "../../native/elementary.js";
import { fromBytes, toBytes } from "../ops.js";
import type { Tensor } from "../tensor.js";
import { type Palette, paletteOf } from "./palette.js";

export const DITHERS = ["none", "floyd-steinberg", "bayer-2", "bayer-4", "bayer-8", "bayer-16"] as const;
export type Dither = (typeof DITHERS)[number];

/** Colours of a cube with edges of 8 share the list of palette entries that may be the nearest. */
const CELL_BITS = 5;
const SHIFT = 8 - CELL_BITS;
const CELL = 1 << SHIFT;
/** Bits of the number of colours whose nearest entries are remembered. */
const SLOT_BITS = 14;

/** Offsets into the palette of the colours that are nearest to given ones. */
class Nearest {
  private readonly colours = new Int32Array(1 << SLOT_BITS).fill(-1);
  private readonly offsets = new Uint16Array(1 << SLOT_BITS);
  private readonly candidates: (Uint16Array | undefined)[] = new Array(1 << (3 * CELL_BITS));

  constructor(private readonly palette: Palette) {}

  /** Offset of the nearest entry, the first of equals; red, green and blue are whole numbers, 0 to 255. */
  offsetOf(red: number, green: number, blue: number): number {
    const colour = (red << 16) | (green << 8) | blue;
    const slot = Math.imul(colour, 0x9e3779b1) >>> (32 - SLOT_BITS);
    if (this.colours[slot] !== colour) {
      this.colours[slot] = colour;
      this.offsets[slot] = this.search(red, green, blue);
    }
    return this.offsets[slot]!;
  }

  private search(red: number, green: number, blue: number): number {
    const cell = ((red >> SHIFT) << (2 * CELL_BITS)) | ((green >> SHIFT) << CELL_BITS) | (blue >> SHIFT);
    let candidates = this.candidates[cell];
    if (candidates === undefined) candidates = this.candidates[cell] = this.candidatesOf(red, green, blue);
    const palette = this.palette;
    let best = 0;
    let least = Number.POSITIVE_INFINITY;
    for (let i = 0; i < candidates.length; i++) {
      const at = candidates[i]!;
      const r = palette[at]! - red;
      const g = palette[at + 1]! - green;
      const b = palette[at + 2]! - blue;
      const distance = r * r + g * g + b * b;
      if (distance >= least) continue;
      best = at;
      least = distance;
    }
    return best;
  }

  /** Entries that lie no further from the colour's cell than some entry lies from its furthest corner. */
  private candidatesOf(red: number, green: number, blue: number): Uint16Array {
    const [low, palette] = [[red, green, blue].map((value) => value & ~(CELL - 1)), this.palette];
    const closest = new Int32Array(palette.length / 3);
    let bound = Number.POSITIVE_INFINITY;
    for (let entry = 0; entry < closest.length; entry++) {
      let furthest = 0;
      for (let axis = 0; axis < 3; axis++) {
        const below = low[axis]! - palette[3 * entry + axis]!;
        const above = -below - (CELL - 1);
        closest[entry]! += square(Math.max(below, above, 0));
        furthest += square(Math.min(below, above));
      }
      bound = Math.min(bound, furthest);
    }
    const near: number[] = [];
    for (let entry = 0; entry < closest.length; entry++) if (closest[entry]! <= bound) near.push(3 * entry);
    return Uint16Array.from(near);
  }
}

/** Bayer's map of a side that is a power of 2: each threshold from 0 to 1 once, less 0.5. */
function bayerMap(side: number): Float64Array {
  let map = [0];
  for (let size = 1; size < side; size *= 2) {
    const smaller = map;
    const quarter = (y: number, x: number): number => 4 * smaller[(y % size) * size + (x % size)]!;
    map = Array.from({ length: 4 * size * size }, (_, at) => {
      const [y, x] = [Math.floor(at / (2 * size)), at % (2 * size)];
      return quarter(y, x) + (y < size ? (x < size ? 0 : 2) : x < size ? 3 : 1);
    });
  }
  return Float64Array.from(map, (rank) => (rank + 0.5) / (side * side) - 0.5);
}

const toByte = (value: number): number => (value <= 0 ? 0 : value >= 255 ? 255 : Math.round(value));

/** Replaces pixels, three bytes each, by their nearest colours. */
function replace(pixels: Uint8Array, palette: Palette): void {
  const nearest = new Nearest(palette);
  for (let at = 0; at < pixels.length; at += 3) {
    const from = nearest.offsetOf(pixels[at]!, pixels[at + 1]!, pixels[at + 2]!);
    for (let k = 0; k < 3; k++) pixels[at + k] = palette[from + k]!;
  }
}

/** Adds thresholds that lie two steps of the palette apart at most, then replaces the pixels. */
function replaceOrdered(pixels: Uint8Array, palette: Palette, width: number, side: number): void {
  const map = bayerMap(side).map((threshold) => (threshold * 2 * 256 * 3) / palette.length);
  for (let at = 0; at < pixels.length; at++) {
    const pixel = Math.floor(at / 3);
    const y = Math.floor(pixel / width);
    pixels[at] = toByte(pixels[at]! + map[(y % side) * side + ((pixel % width) % side)]!);
  }
  replace(pixels, palette);
}

/** Floyd and Steinberg's diffusion, row by row from the left: 7, 3, 5 and 1 sixteenths of each error go on. */
function replaceDiffused(pixels: Uint8Array, palette: Palette, width: number): void {
  const nearest = new Nearest(palette);
  const row = 3 * width;
  // one pixel of margin at either end takes what would leave the row
  let [errors, below] = [new Float32Array(row + 6), new Float32Array(row + 6)];
  for (let start = 0; start < pixels.length; start += row) {
    for (let x = 0; x < row; x += 3) {
      const at = start + x;
      for (let k = 0; k < 3; k++) errors[x + 3 + k]! += pixels[at + k]!;
      const from = nearest.offsetOf(toByte(errors[x + 3]!), toByte(errors[x + 4]!), toByte(errors[x + 5]!));
      for (let k = 0; k < 3; k++) {
        pixels[at + k] = palette[from + k]!;
        const error = (Math.min(Math.max(errors[x + 3 + k]!, 0), 255) - palette[from + k]!) / 16;
        errors[x + 6 + k]! += 7 * error;
        below[x + k]! += 3 * error;
        below[x + 3 + k]! += 5 * error;
        below[x + 6 + k]! += error;
      }
    }
    [errors, below] = [below, errors.fill(0)];
  }
}

/**
 * Pictures [B, H, W, 3] in at most `colours` colours of 8 bits each, 1 to 256, chosen for every picture of the batch by
 * median cut. A picture's bytes are its values times 255, truncated.
 */
export function quantized(image: Tensor, colours: number, dither: Dither): Tensor {
  const [batch, height, width] = image.shape as readonly [number, number, number];
  const bytes = toBytes(image);
  const size = height * width * 3;
  for (let item = 0; item < batch; item++) {
    const pixels = bytes.subarray(item * size, (item + 1) * size);
    const palette = paletteOf(pixels, colours);
    if (dither === "none") replace(pixels, palette);
    else if (dither === "floyd-steinberg") replaceDiffused(pixels, palette, width);
    else replaceOrdered(pixels, palette, width, Number(dither.slice("bayer-".length)));
  }
  return fromBytes(bytes, image.shape);
}
