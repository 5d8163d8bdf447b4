import { Tensor } from "../tensor.js";
import { convolved, gaussianWeights } from "./blur.js";

const TAN_22_5 = Math.SQRT2 - 1;

/** The eight neighbours of a pixel, by eighths of a turn; y grows downwards. */
const COLUMNS = [1, 1, 0, -1, -1, -1, 0, 1] as const;
const ROWS = [0, 1, 1, 1, 0, -1, -1, -1] as const;

/** Gradient of one plane of grey values: its length, and the neighbour that it points to. */
interface Gradient {
  readonly length: Float32Array;
  readonly towards: Uint8Array;
}

/** Luma 0.299, 0.587, 0.114 of pictures [B, H, W, C]; of fewer than three channels the first is grey. */
function greyOf(image: Tensor): Tensor {
  const channels = image.shape[3]!;
  const grey = Tensor.unfilled([...image.shape.slice(0, 3), 1]);
  const [from, into] = [image.data, grey.data];
  for (let pixel = 0, at = 0; pixel < into.length; pixel++, at += channels) {
    into[pixel] = channels < 3 ? from[at]! : 0.299 * from[at]! + 0.587 * from[at + 1]! + 0.114 * from[at + 2]!;
  }
  return grey;
}

/** The neighbour in the direction of a gradient, rounded to eighths of a turn. */
function neighbour(gx: number, gy: number): number {
  const across = Math.abs(gx);
  const down = Math.abs(gy);
  if (down <= TAN_22_5 * across) return gx < 0 ? 4 : 0;
  if (across <= TAN_22_5 * down) return gy < 0 ? 6 : 2;
  if (gy < 0) return gx < 0 ? 5 : 7;
  return gx < 0 ? 3 : 1;
}

/** Sobel's gradient, not normalised, edges repeated. */
function gradientOf(grey: Float32Array, height: number, width: number): Gradient {
  const gradient = { length: new Float32Array(grey.length), towards: new Uint8Array(grey.length) };
  for (let at = 0, y = 0; y < height; y++) {
    const up = y > 0 ? -width : 0;
    const down = y < height - 1 ? width : 0;
    for (let x = 0; x < width; x++, at++) {
      const left = x > 0 ? at - 1 : at;
      const right = x < width - 1 ? at + 1 : at;
      const a = grey[left + up]!;
      const b = grey[right + up]!;
      const c = grey[left + down]!;
      const d = grey[right + down]!;
      const gx = b - a + 2 * (grey[right]! - grey[left]!) + d - c;
      const gy = c - a + 2 * (grey[at + down]! - grey[at + up]!) + d - b;
      gradient.length[at] = Math.sqrt(gx * gx + gy * gy + 1e-6);
      gradient.towards[at] = neighbour(gx, gy);
    }
  }
  return gradient;
}

/** Marks pixels above `low` whose gradient exceeds that of the neighbours before and behind it: 1, or 2 above `high`. */
function ridgesOf({ length, towards }: Gradient, height: number, width: number, low: number, high: number): Uint8Array {
  const marks = new Uint8Array(length.length);
  const lengthAt = (x: number, y: number): number =>
    x < 0 || y < 0 || x >= width || y >= height ? 0 : length[y * width + x]!;
  for (let at = 0; at < length.length; at++) {
    const own = length[at]!;
    if (!(own > low)) continue;
    const column = COLUMNS[towards[at]!]!;
    const row = ROWS[towards[at]!]!;
    const x = at % width;
    const y = (at - x) / width;
    if (own > lengthAt(x + column, y + row) && own > lengthAt(x - column, y - row)) marks[at] = own > high ? 2 : 1;
  }
  return marks;
}

/** Turns marks 1 that touch a mark 2, directly or through others, into 2. */
function follow(marks: Uint8Array, height: number, width: number): void {
  const open: number[] = [];
  for (let at = 0; at < marks.length; at++) if (marks[at] === 2) open.push(at);
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    const x = at % width;
    const y = (at - x) / width;
    for (let eighth = 0; eighth < 8; eighth++) {
      const column = x + COLUMNS[eighth]!;
      const row = y + ROWS[eighth]!;
      if (column < 0 || row < 0 || column >= width || row >= height) continue;
      const next = row * width + column;
      if (marks[next] !== 1) continue;
      marks[next] = 2;
      open.push(next);
    }
  }
}

/**
 * Canny's edges of pictures [B, H, W, C] as 1 on 0, [B, H, W]: luma, Gaussian of 5 x 5 and sigma 1, Sobel, pixels that
 * exceed both neighbours along the gradient, then those above `high` and what is connected to them above `low`. Steps
 * and thresholds are kornia's: a step from 0 to 1 has a gradient of about 1.6 after the blur.
 */
export function cannyEdges(image: Tensor, low: number, high: number): Tensor {
  const [batch, height, width] = image.shape as readonly [number, number, number];
  const smooth = convolved(greyOf(image), gaussianWeights(5, 1, 2));
  const edges = Tensor.zeros([batch, height, width]);
  const size = height * width;
  for (let item = 0; item < batch; item++) {
    const gradient = gradientOf(smooth.data.subarray(item * size, (item + 1) * size), height, width);
    const marks = ridgesOf(gradient, height, width, low, high);
    follow(marks, height, width);
    for (let at = 0; at < size; at++) if (marks[at] === 2) edges.data[item * size + at] = 1;
  }
  return edges;
}
