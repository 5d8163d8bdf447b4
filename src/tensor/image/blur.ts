import { exp } from "../../native/elementary.js";
import { loadNative } from "../../native/load.js";
import { weightedSum } from "../ops.js";
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
