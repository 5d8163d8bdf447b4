const BITS = 5;
const CELLS = 1 << (3 * BITS);

/** Colours of 8 bits, three bytes each. */
export type Palette = Uint8Array;

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
const coordinate = (cell: number, axis: number): number => (cell >> ((2 - axis) * BITS)) & ((1 << BITS) - 1);

/** The colours of pixels, three bytes each, in order of first appearance; undefined where there are more than `most`. */
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
  const shift = 8 - BITS;
  for (let at = 0; at < pixels.length; at += 3) {
    const red = pixels[at]!;
    const green = pixels[at + 1]!;
    const blue = pixels[at + 2]!;
    const cell = ((red >> shift) << (2 * BITS)) | ((green >> shift) << BITS) | (blue >> shift);
    counts[cell]!++;
    sums[3 * cell]! += red;
    sums[3 * cell + 1]! += green;
    sums[3 * cell + 2]! += blue;
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

/** Sorts a box's cells along its longest axis and cuts it where half of its pixels lie on either side. */
function cut(box: Box, cells: number[], counts: Uint32Array): [Box, Box] {
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

/** The box of most pixels among those that can be cut; -1 where none can. */
function largest(boxes: readonly Box[]): number {
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

// decision 216
/**
 * At most `count` colours for pixels of 8-bit red, green and blue: their own where they have no more, else the means of
 * boxes of Heckbert's median cut ("Color image quantization for frame buffer display", 1982) over 5-bit cells.
 */
export function paletteOf(pixels: Uint8Array, count: number): Palette {
  const exact = distinct(pixels, count);
  if (exact !== undefined) return exact;
  const { counts, sums } = histogramOf(pixels);
  const cells: number[] = [];
  for (let cell = 0; cell < CELLS; cell++) if (counts[cell]! > 0) cells.push(cell);
  const boxes: Box[] = [{ from: 0, end: cells.length, pixels: pixels.length / 3 }];
  for (let box = largest(boxes); boxes.length < count && box >= 0; box = largest(boxes)) {
    boxes.splice(box, 1, ...cut(boxes[box]!, cells, counts));
  }
  return Uint8Array.from(boxes.flatMap((box) => meanOf(box, cells, sums)));
}
