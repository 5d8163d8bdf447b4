import type { BlendMode } from "../../native/bindings.js";
import { loadNative } from "../../native/load.js";
import { Tensor } from "../tensor.js";

export type { BlendMode };

/**
 * a * (1 - factor) + mode(a, b) * factor of pictures of one size, clamped to 0 … 1. One picture is blended with each of
 * the other batch; other batches must be equal.
 */
export function blended(a: Tensor, b: Tensor, mode: BlendMode, factor: number): Tensor {
  const [ofA, ofB] = [a.shape[0]!, b.shape[0]!];
  const batch = ofA === 1 ? ofB : ofA;
  const out = Tensor.unfilled([batch, ...a.shape.slice(1)]);
  const size = batch === 0 ? 0 : out.size / batch;
  const item = ({ data }: Tensor, index: number): Float32Array => data.subarray(index * size, (index + 1) * size);
  for (let i = 0; i < batch; i++) {
    loadNative().blendImages(item(out, i), item(a, ofA === 1 ? 0 : i), item(b, ofB === 1 ? 0 : i), mode, factor);
  }
  return out;
}
