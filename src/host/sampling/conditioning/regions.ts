import { Tensor } from "../../../tensor/tensor.js";

/**
 * A copy of destination [B, C, H, W] with source * mask added to the area of source, [B, C, h, w], from row y and column
 * x on. The mask, [1 or B, h, w], is shared by the channels. `out` may be the destination.
 */
export function addMasked(
  destination: Tensor,
  source: Tensor,
  mask: Tensor,
  y: number,
  x: number,
  out = destination.clone(),
): Tensor {
  const [, channels, rows, columns] = destination.shape as [number, number, number, number];
  const [, , height, width] = source.shape as [number, number, number, number];
  const [to, from, weights] = [out.data, source.data, mask.data];
  for (let plane = 0; plane < source.size / (height * width); plane++) {
    const item = Math.floor(plane / channels) % mask.shape[0]!;
    for (let row = 0; row < height; row++) {
      const at = (plane * rows + y + row) * columns + x;
      for (let column = 0; column < width; column++) {
        const weight = weights[(item * height + row) * width + column]!;
        to[at + column]! += from[(plane * height + row) * width + column]! * weight;
      }
    }
  }
  return out;
}

/** The part [B, C, h, w] of source [B, C, H, W] from (y0, x0) on. */
export function crop(source: Tensor, y0: number, x0: number, height: number, width: number): Tensor {
  const [batch, channels, rows, columns] = source.shape as [number, number, number, number];
  const out = Tensor.unfilled([batch, channels, height, width]);
  for (let plane = 0; plane < batch * channels; plane++) {
    for (let row = 0; row < height; row++) {
      const from = (plane * rows + y0 + row) * columns + x0;
      out.data.set(source.data.subarray(from, from + width), (plane * height + row) * width);
    }
  }
  return out;
}

/** Tensors one after the other along the first axis. */
export function concatBatch(tensors: readonly Tensor[]): Tensor {
  const batch = tensors.reduce((sum, { shape }) => sum + shape[0]!, 0);
  const out = Tensor.unfilled([batch, ...tensors[0]!.shape.slice(1)]);
  let at = 0;
  for (const { data } of tensors) {
    out.data.set(data, at);
    at += data.length;
  }
  return out;
}

/** Items `from` to `from + count` of a batch, which share the values of x. */
export function sliceBatch(x: Tensor, from: number, count: number): Tensor {
  const item = x.size / x.shape[0]!;
  return Tensor.from(x.data.subarray(from * item, (from + count) * item), [count, ...x.shape.slice(1)]);
}
