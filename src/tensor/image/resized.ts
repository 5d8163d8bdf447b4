import { LatentkitError } from "../../base/errors.js";
import { fourSides } from "../shape.js";
import { Tensor } from "../tensor.js";
import { cropped } from "./region.js";

export type ResizeMethod = "bilinear" | "bicubic";

/** For each output position as many input positions and weights as the method has taps. */
interface Taps {
  readonly count: number;
  readonly from: Int32Array;
  readonly weights: Float64Array;
}

// Keys' kernel with a = -0.75, at the distances 1 + t, t, 1 - t, 2 - t
const cubic = (t: number): readonly number[] => {
  const near = (d: number): number => (1.25 * d - 2.25) * d * d + 1;
  const far = (d: number): number => ((-0.75 * d + 3.75) * d - 6) * d + 3;
  return [far(1 + t), near(t), near(1 - t), far(2 - t)];
};

function tapsOf(size: number, outSize: number, method: ResizeMethod): Taps {
  const count = method === "bicubic" ? 4 : 2;
  const taps = { count, from: new Int32Array(outSize * count), weights: new Float64Array(outSize * count) };
  for (let i = 0; i < outSize; i++) {
    const centre = ((i + 0.5) * size) / outSize - 0.5;
    const at = method === "bilinear" ? Math.max(centre, 0) : centre;
    const first = Math.floor(at);
    const t = at - first;
    const weights = method === "bicubic" ? cubic(t) : [1 - t, t];
    for (let k = 0; k < count; k++) {
      const position = first + k - (count === 4 ? 1 : 0);
      taps.from[i * count + k] = Math.min(Math.max(position, 0), size - 1);
      taps.weights[i * count + k] = weights[k]!;
    }
  }
  return taps;
}

/** Resizes the middle axis of [outer, size, inner]. */
function along(x: Float32Array, outer: number, size: number, inner: number, taps: Taps, out: Float32Array): void {
  const { count, from, weights } = taps;
  const outSize = from.length / count;
  for (let line = 0; line < outer * outSize; line++) {
    const start = Math.floor(line / outSize) * size;
    const tap = (line % outSize) * count;
    for (let k = 0; k < inner; k++) {
      let sum = 0;
      for (let t = tap; t < tap + count; t++) sum += weights[t]! * x[(start + from[t]!) * inner + k]!;
      out[line * inner + k] = sum;
    }
  }
}

function requirePixels({ shape }: Tensor): void {
  if (shape[1] !== 0 && shape[2] !== 0) return;
  const message = `Image: expected at least one pixel to resize, received shape [${shape.join(", ")}].`;
  throw new LatentkitError("tensor.bad-shape", message);
}

/** Pictures [B, H, W, C] of another size: align_corners false, no antialias, edges clamped. */
export function resized(image: Tensor, height: number, width: number, method: ResizeMethod): Tensor {
  const [batch, inHeight, inWidth, channels] = fourSides("resized", image, "[B, H, W, C]");
  if (inHeight === height && inWidth === width) return image;
  requirePixels(image);
  const across = Tensor.unfilled([batch, inHeight, width, channels]);
  along(image.data, batch * inHeight, inWidth, channels, tapsOf(inWidth, width, method), across.data);
  const out = Tensor.unfilled([batch, height, width, channels]);
  along(across.data, batch, inHeight, width * channels, tapsOf(inHeight, height, method), out.data);
  return out;
}

/** Rounds half to even. */
const even = (x: number): number => {
  const rounded = Math.round(x);
  return rounded - x === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
};

/** Number of pixels to cut off at either end of a side, so that `part` of it is left, and at least one pixel. */
const excess = (side: number, part: number): number => Math.min(even((side - side * part) / 2), (side - 1) >> 1);

/** Resizes pictures to a size after cropping them at two opposite edges to its proportions. */
export function fitted(image: Tensor, height: number, width: number, method: ResizeMethod): Tensor {
  const [, inHeight, inWidth] = fourSides("fitted", image, "[B, H, W, C]");
  if (inHeight === height && inWidth === width) return image;
  requirePixels(image);
  const [aspect, target] = [inWidth / inHeight, width / height];
  const left = aspect > target ? excess(inWidth, target / aspect) : 0;
  const top = aspect < target ? excess(inHeight, aspect / target) : 0;
  const middle = { top, left, height: inHeight - 2 * top, width: inWidth - 2 * left };
  return resized(top + left === 0 ? image : cropped(image, middle), height, width, method);
}
