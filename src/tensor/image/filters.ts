import { exp } from "../../native/elementary.js";
import { loadNative } from "../../native/load.js";
import { lumaAt } from "../channels.js";
import { weightedSum } from "../ops.js";
import { itemValues } from "../parts.js";
import { fourSides } from "../shape.js";
import { Tensor } from "../tensor.js";

/**
 * Weights of a Gaussian at `count` positions (odd), spaced evenly from -reach to reach, that add up to 1. Outer products
 * of them with themselves are the Gaussian of a square of positions.
 */
export function gaussianWeights(count: number, sigma: number, reach: number): Float32Array {
  const middle = (count - 1) / 2;
  const weights = Array.from({ length: count }, (_, i) => {
    const at = middle === 0 ? 0 : ((i - middle) / middle) * reach;
    return exp(-(at * at) / (2 * sigma * sigma));
  });
  const sum = weights.reduce((a, b) => a + b);
  return Float32Array.from(weights, (weight) => weight / sum);
}

/** Pictures [B, H, W, C] weighted along both axes; borders are mirrored without repeating the outermost pixel. */
export function convolved(image: Tensor, weights: Float32Array): Tensor {
  const [batch, height, width, channels] = fourSides("convolved", image, "[B, H, W, C]");
  const out = Tensor.unfilled(image.shape);
  loadNative().convolveImage(out.data, image.data, batch, height, width, channels, weights);
  return out;
}

/** x clamped to 0 … 1, in place; NaN stays NaN. */
export function clampToUnit(x: Tensor): Tensor {
  loadNative().clampToUnit(x.data);
  return x;
}

/** Pictures plus `amount` times what the weights take away from them, clamped to 0 … 1. */
export function sharpened(image: Tensor, weights: Float32Array, amount: number): Tensor {
  const blurred = convolved(image, weights);
  const terms = [[1 + amount, image] as const, [-amount, blurred] as const];
  return clampToUnit(weightedSum(terms, blurred));
}

/** Sides of values seen as lines: [outer, count, inner] along the middle axis. */
type Lines = readonly [outer: number, count: number, inner: number];
/** Two neighbours of each value along an axis, `before` positions in front of it and `after` behind it. */
type Neighbours = readonly [lines: Lines, before: number, after: number];

/** Results of passes over values, each in one of two buffers in turn; the source is never written. */
class Passes {
  #values: Float32Array;
  #spare: Float32Array | undefined;
  readonly #source: Float32Array;
  readonly #isLeast: boolean;

  constructor(source: Float32Array, isLeast: boolean) {
    this.#source = source;
    this.#isLeast = isLeast;
    this.#values = source;
  }

  /** Takes the extreme of the neighbours of each value, which may be its own neighbour. */
  pass(...all: readonly Neighbours[]): void {
    const out = this.#spare ?? new Float32Array(this.#values.length);
    for (const [index, [lines, before, after]] of all.entries()) {
      loadNative().extremesAlong(out, this.#values, lines, before, after, this.#isLeast, index > 0);
    }
    this.#spare = this.#values === this.#source ? undefined : this.#values;
    this.#values = out;
  }

  /** The values, never the source itself. */
  result(shape: readonly number[]): Tensor {
    return Tensor.from(this.#values === this.#source ? this.#source.slice() : this.#values, shape);
  }
}

/** Widens the window from each single value to `before` in front of it and `after` behind it; each pass doubles it. */
function widen(passes: Passes, lines: Lines, before: number, after: number): void {
  const [mostFront, mostBack] = [Math.min(before, lines[1]), Math.min(after, lines[1])];
  let [front, back] = [0, 0];
  while (front < mostFront || back < mostBack) {
    const room = front + back + 1;
    const further = Math.min(mostFront - front, Math.ceil(room / 2));
    const behind = Math.min(mostBack - back, room - further);
    passes.pass([lines, further, behind]);
    front += further;
    back += behind;
  }
}

/** Greatest, or least, value in a square of `side` pixels around each of pictures [B, H, W, C], cut off at the borders. */
export function extremeInSquare(x: Tensor, side: number, isGreatest: boolean): Tensor {
  const [batch, height, width, channels] = x.shape as readonly [number, number, number, number];
  const before = Math.floor(side / 2);
  const after = side - 1 - before;
  const passes = new Passes(x.data, !isGreatest);
  widen(passes, [batch, height, width * channels], before, after);
  widen(passes, [batch * height, width, channels], before, after);
  return passes.result(x.shape);
}

/** Greatest, or least, value within `reach` steps to a side neighbour around each of masks [B, H, W]. */
export function extremeInDiamond(x: Tensor, reach: number, isGreatest: boolean): Tensor {
  const [batch, height, width] = x.shape as readonly [number, number, number];
  const down: Lines = [batch, height, width];
  const across: Lines = [batch * height, width, 1];
  const most = Math.min(reach, height + width);
  const passes = new Passes(x.data, !isGreatest);
  // a value itself and its four neighbours; after that, four diamonds of radius r whose centres lie s <= r away from one
  // cover the diamond of radius r + s around it
  if (most > 0) passes.pass([down, 1, 1], [across, 1, 1], [across, 0, 0]);
  for (let radius = 1; radius < most; ) {
    const step = Math.min(radius, most - radius);
    passes.pass([down, step, step], [across, step, step]);
    radius += step;
  }
  return passes.result(x.shape);
}

const TAN_22_5 = Math.SQRT2 - 1;

/** The eight neighbours of a pixel, by eighths of a turn; y grows downwards. */
const COLUMNS = [1, 1, 0, -1, -1, -1, 0, 1] as const;
const ROWS = [0, 1, 1, 1, 0, -1, -1, -1] as const;

/** Gradient of one plane of grey values: its length, and the neighbour that it points to. */
interface Gradient {
  readonly length: Float32Array;
  readonly towards: Uint8Array;
}

/** Luma of pictures [B, H, W, C]; of fewer than three channels the first. */
function greyOf(image: Tensor): Tensor {
  const channels = image.shape[3]!;
  const grey = Tensor.unfilled([...image.shape.slice(0, 3), 1]);
  const [from, into] = [image.data, grey.data];
  for (let pixel = 0, at = 0; pixel < into.length; pixel++, at += channels) {
    into[pixel] = channels < 3 ? from[at]! : lumaAt(from, at);
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
function followRidges(marks: Uint8Array, height: number, width: number): void {
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
    const gradient = gradientOf(itemValues(smooth, item), height, width);
    const marks = ridgesOf(gradient, height, width, low, high);
    followRidges(marks, height, width);
    for (let at = 0; at < size; at++) if (marks[at] === 2) edges.data[item * size + at] = 1;
  }
  return edges;
}
