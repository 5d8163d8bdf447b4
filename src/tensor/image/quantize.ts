import { square } from "../../native/elementary.js";
import { fromBytes, toBytes } from "../ops.js";
import type { Tensor } from "../tensor.js";

export const DITHERS = ["none", "floyd-steinberg", "bayer-2", "bayer-4", "bayer-8", "bayer-16"] as const;
export type Dither = (typeof DITHERS)[number];

/** Colours of a cell, a cube with edges of 8, share the list of palette entries that may be the nearest. */
const CELL_BITS = 5;
const CELLS = 1 << (3 * CELL_BITS);
const SHIFT = 8 - CELL_BITS;
const EDGE = 1 << SHIFT;
/** Bits of the number of colours whose nearest entries are remembered. */
const SLOT_BITS = 14;

/** Colours of 8 bits, three bytes each. */
type Palette = Uint8Array;

const cellOf = (red: number, green: number, blue: number): number =>
  ((red >> SHIFT) << (2 * CELL_BITS)) | ((green >> SHIFT) << CELL_BITS) | (blue >> SHIFT);

/** Offsets into the palette of the colours that are nearest to given ones. */
class Nearest {
  readonly #colours = new Int32Array(1 << SLOT_BITS).fill(-1);
  readonly #offsets = new Uint16Array(1 << SLOT_BITS);
  readonly #candidates: (Uint16Array | undefined)[] = new Array(CELLS);
  readonly #palette: Palette;

  constructor(palette: Palette) {
    this.#palette = palette;
  }

  /** Offset of the nearest entry, the first of equals; red, green and blue are whole numbers, 0 to 255. */
  offsetOf(red: number, green: number, blue: number): number {
    const colour = (red << 16) | (green << 8) | blue;
    const slot = Math.imul(colour, 0x9e3779b1) >>> (32 - SLOT_BITS);
    if (this.#colours[slot] !== colour) {
      this.#colours[slot] = colour;
      this.#offsets[slot] = this.#search(red, green, blue);
    }
    return this.#offsets[slot]!;
  }

  #search(red: number, green: number, blue: number): number {
    const cell = cellOf(red, green, blue);
    let candidates = this.#candidates[cell];
    if (candidates === undefined) candidates = this.#candidates[cell] = this.#candidatesOf(red, green, blue);
    const palette = this.#palette;
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
  #candidatesOf(red: number, green: number, blue: number): Uint16Array {
    const [low, palette] = [[red, green, blue].map((value) => value & ~(EDGE - 1)), this.#palette];
    const closest = new Int32Array(palette.length / 3);
    let bound = Number.POSITIVE_INFINITY;
    for (let entry = 0; entry < closest.length; entry++) {
      let furthest = 0;
      for (let axis = 0; axis < 3; axis++) {
        const below = low[axis]! - palette[3 * entry + axis]!;
        const above = -below - (EDGE - 1);
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

/** Floyd and Steinberg's diffusion, row by row from the left: 7, 3, 5 and 1 sixteenths of each error are passed on. */
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

/** Pixels counted by cells of 32 x 32 x 32: how many, and the sums of their colours. */
interface Histogram {
  readonly counts: Uint32Array;
  readonly sums: Float64Array;
}

/** Cells `from` to `end` of the list, and their pixels. */
interface Box {
  readonly from: number;
  readonly end: number;
  readonly pixels: number;
}

/** Coordinate of a cell: axis 0 red, 1 green, 2 blue. */
const coordinate = (cell: number, axis: number): number => (cell >> ((2 - axis) * CELL_BITS)) & ((1 << CELL_BITS) - 1);

/** The colours of pixels, three bytes each, in order of first appearance; undefined if there are more than `most`. */
function distinct(pixels: Uint8Array, most: number): Palette | undefined {
  const colours = new Set<number>();
  let last = -1;
  for (let at = 0; at < pixels.length; at += 3) {
    const colour = (pixels[at]! << 16) | (pixels[at + 1]! << 8) | pixels[at + 2]!;
    if (colour === last) continue;
    last = colour;
    colours.add(colour);
    if (colours.size > most) return undefined;
  }
  return Uint8Array.from([...colours].flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
}

function histogramOf(pixels: Uint8Array): Histogram {
  const counts = new Uint32Array(CELLS);
  const sums = new Float64Array(3 * CELLS);
  for (let at = 0; at < pixels.length; at += 3) {
    const cell = cellOf(pixels[at]!, pixels[at + 1]!, pixels[at + 2]!);
    counts[cell]!++;
    for (let axis = 0; axis < 3; axis++) sums[3 * cell + axis]! += pixels[at + axis]!;
  }
  return { counts, sums };
}

/** The axis along which cells lie furthest apart. */
function longestAxis(cells: readonly number[]): number {
  const extents = [0, 1, 2].map((axis) => {
    const positions = cells.map((cell) => coordinate(cell, axis));
    return positions.reduce((a, b) => Math.max(a, b)) - positions.reduce((a, b) => Math.min(a, b));
  });
  return extents.indexOf(Math.max(...extents));
}

/** Sorts a box's cells along its longest axis and cuts it so that half of its pixels lie on either side. */
function cutBox(box: Box, cells: number[], counts: Uint32Array): [Box, Box] {
  const own = cells.slice(box.from, box.end);
  const axis = longestAxis(own);
  own.sort((a, b) => coordinate(a, axis) - coordinate(b, axis) || a - b);
  own.forEach((cell, index) => {
    cells[box.from + index] = cell;
  });
  let [pixels, size] = [counts[own[0]!]!, 1];
  while (size < own.length - 1 && pixels + counts[own[size]!]! <= box.pixels / 2) pixels += counts[own[size++]!]!;
  const middle = box.from + size;
  return [
    { from: box.from, end: middle, pixels },
    { from: middle, end: box.end, pixels: box.pixels - pixels },
  ];
}

/** The box of most pixels among those that can be cut; -1 if none can. */
function largestBox(boxes: readonly Box[]): number {
  let best = -1;
  boxes.forEach(({ from, end, pixels }, index) => {
    if (end - from > 1 && (best < 0 || pixels > boxes[best]!.pixels)) best = index;
  });
  return best;
}

/** The mean colour of a box, rounded. */
function meanOf({ from, end, pixels }: Box, cells: readonly number[], sums: Float64Array): number[] {
  const total = [0, 0, 0];
  for (let at = from; at < end; at++) for (let axis = 0; axis < 3; axis++) total[axis]! += sums[3 * cells[at]! + axis]!;
  return total.map((sum) => Math.round(sum / pixels));
}

// decisions: Some samplers and nodes are unchecked
/**
 * At most `count` colours for pixels of 8-bit red, green and blue: their own if they have no more, else the means of
 * boxes of Heckbert's median cut ("Color image quantization for frame buffer display", 1982) over 5-bit cells.
 */
function paletteOf(pixels: Uint8Array, count: number): Palette {
  const exact = distinct(pixels, count);
  if (exact !== undefined) return exact;
  const { counts, sums } = histogramOf(pixels);
  const cells: number[] = [];
  for (let cell = 0; cell < CELLS; cell++) if (counts[cell]! > 0) cells.push(cell);
  const boxes: Box[] = [{ from: 0, end: cells.length, pixels: pixels.length / 3 }];
  for (let box = largestBox(boxes); boxes.length < count && box >= 0; box = largestBox(boxes)) {
    boxes.splice(box, 1, ...cutBox(boxes[box]!, cells, counts));
  }
  return Uint8Array.from(boxes.flatMap((box) => meanOf(box, cells, sums)));
}
