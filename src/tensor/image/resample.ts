import { cos, sin } from "../../native/elementary.js";
import { fromBytes, toBytes } from "../ops.js";
import { fourSides } from "../shape.js";
import { elementCount, Tensor } from "../tensor.js";

/** Rounding of each number on the way: to float32, or none. */
type Round = (x: number) => number;

/** Reach of a filter, in pixels of the smaller picture, and its weight at a distance. */
interface Filter {
  readonly reach: number;
  at(distance: number, round: Round): number;
}

/** Pillow's filters; "bicubic" is Keys' with a = -0.5. */
const FILTERS = {
  box: { reach: 0.5, at: (x) => (x > -0.5 && x <= 0.5 ? 1 : 0) },
  bilinear: { reach: 1, at: (x) => Math.max(0, 1 - Math.abs(x)) },
  hamming: { reach: 1, at: hamming },
  bicubic: { reach: 2, at: bicubic },
} as const satisfies Readonly<Record<string, Filter>>;

export type FilterName = keyof typeof FILTERS;

function hamming(x: number): number {
  const angle = Math.abs(x) * Math.PI;
  if (angle >= Math.PI) return 0;
  return angle === 0 ? 1 : (sin(angle) / angle) * (0.54 + 0.46 * cos(angle));
}

/** Each product with its sum is rounded once, as a fused multiply-add is. */
function bicubic(x: number, round: Round): number {
  const t = Math.abs(x);
  if (t < 1) return round(round(round(1.5 * t - 2.5) * t) * t + 1);
  return t < 2 ? round(round(round(-0.5 * t + 2.5) * t - 4) * t + 2) : 0;
}

/** Weights of the pixels that make one: those from `first` on. */
interface Window {
  readonly first: number;
  readonly weights: Float64Array;
}

/** Pixels of a result along one side: `count` of them, and those that are made. */
interface Line {
  readonly count: number;
  readonly from: number;
  readonly length: number;
}

/** The windows of a resize of `length` pixels, whose filter is as wide as a pixel of the smaller picture. */
function windowsOf(length: number, line: Line, { reach, at }: Filter, round: Round): Window[] {
  const scale = round(length / line.count);
  const wide = Math.max(scale, 1);
  const [span, inverse] = [round(reach * wide), round(1 / wide)];
  return Array.from({ length: line.length }, (_, i) => {
    const middle = round(scale * (line.from + i + 0.5));
    const first = Math.max(Math.trunc(round(middle - span) + 0.5), 0);
    const end = Math.min(Math.trunc(round(middle + span) + 0.5), length);
    const weights = Float64Array.from({ length: end - first }, (_, k) =>
      at(round((round(first + k - middle) + 0.5) * inverse), round),
    );
    const total = weights.reduce((sum, weight) => round(sum + weight), 0);
    return { first, weights: total === 0 ? weights : weights.map((weight) => round(weight / total)) };
  });
}

/** Values of [outer, length, inner] summed up by windows; `finish` sees each sum before it is stored. */
function pass(
  out: Float32Array | Uint8ClampedArray,
  x: Float32Array | Uint8Array | Uint8ClampedArray,
  windows: readonly Window[],
  [outer, length, inner]: readonly [number, number, number],
  { round, finish }: { readonly round: Round; readonly finish: Round },
): void {
  for (let o = 0, to = 0; o < outer; o++)
    for (const { first, weights } of windows)
      for (let k = 0; k < inner; k++) {
        let sum = 0;
        for (let j = 0, at = (o * length + first) * inner + k; j < weights.length; j++, at += inner)
          sum = round(sum + weights[j]! * x[at]!);
        out[to++] = finish(sum);
      }
}

const exactly: Round = (x) => x;
/** Arithmetic of PyTorch's kernels, whose multiply-adds are fused. */
const OF_FLOATS = { round: Math.fround, finish: exactly };
/** Sums of bytes in fixed point, which a double holds exactly. */
const OF_BYTES = { round: exactly, finish: (sum: number) => Math.floor(sum + 0.5) };

/** Size of a result, and the part of it that is made: the whole if there is none. */
interface ResampledSize {
  readonly height: number;
  readonly width: number;
  readonly part?: { readonly top: number; readonly left: number; readonly height: number; readonly width: number };
}

/**
 * Pictures [B, H, W, C] at another size, with antialias: PyTorch's interpolate of floats. Values may overshoot the input's.
 * Fails with tensor.too-large.
 */
export function resampled(image: Tensor, { height, width, part }: ResampledSize, name: FilterName): Tensor {
  const [batch, rows, columns, channels] = fourSides("resampled", image, "[B, H, W, C]");
  const { top, left, ...made } = part ?? { top: 0, left: 0, height, width };
  const windows = (length: number, line: Line): Window[] => windowsOf(length, line, FILTERS[name], Math.fround);
  const across = new Float32Array(elementCount([batch, rows, made.width, channels]));
  const right = windows(columns, { count: width, from: left, length: made.width });
  pass(across, image.data, right, [batch * rows, columns, channels], OF_FLOATS);
  const out = Tensor.unfilled([batch, made.height, made.width, channels]);
  const down = windows(rows, { count: height, from: top, length: made.height });
  pass(out.data, across, down, [batch, rows, made.width * channels], OF_FLOATS);
  return out;
}

/** One in the fixed point of Pillow's weights. */
const ONE = 2 ** 22;

/** Windows with weights rounded to fixed point. */
function fixedWindows(length: number, count: number, filter: Filter): Window[] {
  return windowsOf(length, { count, from: 0, length: count }, filter, exactly).map(({ first, weights }) => ({
    first,
    weights: weights.map((weight) => Math.trunc(weight * ONE + (weight < 0 ? -0.5 : 0.5)) / ONE),
  }));
}

/** The pixel below the middle of each of `count`. */
const nearestWindows = (length: number, count: number): Window[] =>
  Array.from({ length: count }, (_, i) => ({
    first: Math.min(Math.floor(((i + 0.5) * length) / count), length - 1),
    weights: Float64Array.of(1),
  }));

/** Pillow's resize of pictures [B, H, W, C] as bytes: across, then down, each pass rounded. Fails with tensor.too-large. */
export function resampledBytes(image: Tensor, height: number, width: number, name: FilterName | "nearest"): Tensor {
  const [batch, rows, columns, channels] = fourSides("resampledBytes", image, "[B, H, W, C]");
  const windows = (length: number, count: number): Window[] =>
    name === "nearest" ? nearestWindows(length, count) : fixedWindows(length, count, FILTERS[name]);
  const across = new Uint8ClampedArray(elementCount([batch, rows, width, channels]));
  pass(across, toBytes(image), windows(columns, width), [batch * rows, columns, channels], OF_BYTES);
  const shape = [batch, height, width, channels];
  const out = new Uint8ClampedArray(elementCount(shape));
  pass(out, across, windows(rows, height), [batch, rows, width * channels], OF_BYTES);
  return fromBytes(new Uint8Array(out.buffer), shape);
}
