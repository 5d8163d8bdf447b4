import type { BlendMode } from "../../native/bindings.js";
import { loadNative } from "../../native/load.js";
import { itemValues } from "../parts.js";
import { Tensor } from "../tensor.js";

/**
 * a * (1 - factor) + mode(a, b) * factor of pictures of one size, clamped to 0 … 1. One picture is blended with each of
 * the other batch; other batches must be equal.
 */
export function blended(a: Tensor, b: Tensor, mode: BlendMode, factor: number): Tensor {
  const [ofA, ofB] = [a.shape[0]!, b.shape[0]!];
  const batch = ofA === 1 ? ofB : ofA;
  const out = Tensor.unfilled([batch, ...a.shape.slice(1)]);
  for (let i = 0; i < batch; i++) {
    const [itemA, itemB] = [itemValues(a, ofA === 1 ? 0 : i), itemValues(b, ofB === 1 ? 0 : i)];
    loadNative().blendImages(itemValues(out, i), itemA, itemB, mode, factor);
  }
  return out;
}

/** Alpha of a result from those of source and destination. */
type AlphaOf = (sa: number, da: number) => number;
/** A colour of a result; all colours are multiplied with their alpha. */
type ColourOf = (s: number, d: number, sa: number, da: number) => number;

const both: AlphaOf = (sa, da) => sa + da - sa * da;
const inside: AlphaOf = (sa, da) => sa * da;

/** The operators of Porter and Duff, and the blend modes that go by the same name, as Android's PorterDuff.Mode defines them. */
const OPERATORS = {
  ADD: [(sa, da) => Math.min(sa + da, 1), (s, d) => Math.min(s + d, 1)],
  CLEAR: [() => 0, () => 0],
  DARKEN: [both, (s, d, sa, da) => (1 - da) * s + (1 - sa) * d + Math.min(s, d)],
  DST: [(_, da) => da, (_, d) => d],
  DST_ATOP: [(sa) => sa, (s, d, sa, da) => sa * d + (1 - da) * s],
  DST_IN: [inside, (_, d, sa) => d * sa],
  DST_OUT: [(sa, da) => (1 - sa) * da, (_, d, sa) => (1 - sa) * d],
  DST_OVER: [(sa, da) => da + (1 - da) * sa, (s, d, _, da) => d + (1 - da) * s],
  LIGHTEN: [both, (s, d, sa, da) => (1 - da) * s + (1 - sa) * d + Math.max(s, d)],
  MULTIPLY: [inside, (s, d) => s * d],
  OVERLAY: [both, (s, d, sa, da) => (2 * d < da ? 2 * s * d : sa * da - 2 * (da - d) * (sa - s))],
  SCREEN: [both, (s, d) => s + d - s * d],
  SRC: [(sa) => sa, (s) => s],
  SRC_ATOP: [(_, da) => da, (s, d, sa, da) => da * s + (1 - sa) * d],
  SRC_IN: [inside, (s, _, __, da) => s * da],
  SRC_OUT: [(sa, da) => (1 - da) * sa, (s, _, __, da) => (1 - da) * s],
  SRC_OVER: [(sa, da) => sa + (1 - sa) * da, (s, d, sa) => s + (1 - sa) * d],
  XOR: [(sa, da) => (1 - da) * sa + (1 - sa) * da, (s, d, sa, da) => (1 - da) * s + (1 - sa) * d],
} as const satisfies Record<string, readonly [AlphaOf, ColourOf]>;

export type PorterDuffMode = keyof typeof OPERATORS;
export const PORTER_DUFF_MODES = Object.keys(OPERATORS) as PorterDuffMode[];

/** Pictures [B, H, W, 3] and what of them is transparent, [B, H, W]: 1 is all. */
export interface Layer {
  readonly image: Tensor;
  readonly transparency: Tensor;
}

/** Composes two layers of one size; colours are not multiplied with alpha, and 0 if nothing is left of them. */
export function composed(source: Layer, destination: Layer, mode: PorterDuffMode): Layer {
  const [alphaOf, colourOf]: readonly [AlphaOf, ColourOf] = OPERATORS[mode];
  const image = Tensor.unfilled(source.image.shape);
  const transparency = Tensor.unfilled(source.transparency.shape);
  const [s, d] = [source.image.data, destination.image.data];
  for (let pixel = 0, at = 0; pixel < transparency.size; pixel++) {
    const sa = 1 - source.transparency.data[pixel]!;
    const da = 1 - destination.transparency.data[pixel]!;
    const alpha = alphaOf(sa, da);
    for (let k = 0; k < 3; k++, at++) {
      const colour = alpha > 1e-5 ? colourOf(s[at]! * sa, d[at]! * da, sa, da) / alpha : 0;
      image.data[at] = Math.min(Math.max(colour, 0), 1);
    }
    transparency.data[pixel] = 1 - alpha;
  }
  return { image, transparency };
}
