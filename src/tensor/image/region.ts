import { fourSides } from "../shape.js";
import { elementCount, Tensor } from "../tensor.js";

/** A rectangle in pixels. */
export interface Region {
  readonly top: number;
  readonly left: number;
  readonly height: number;
  readonly width: number;
}

/** The part of pictures [B, H, W, C] or masks [B, H, W] that lies in a region; the region must lie within them. */
export function cropped(x: Tensor, { top, left, height, width }: Region): Tensor {
  const [batch, inHeight, inWidth, channels = 1] = x.shape as readonly [number, number, number, number?];
  const out = Tensor.unfilled([batch, height, width, ...x.shape.slice(3)]);
  const row = width * channels;
  for (let line = 0; line < batch * height; line++) {
    const y = Math.floor(line / height) * inHeight + top + (line % height);
    const from = (y * inWidth + left) * channels;
    out.data.set(x.data.subarray(from, from + row), line * row);
  }
  return out;
}

/** A copy of `count` entries of a batch from `first` on. */
export function entriesOf(x: Tensor, first: number, count: number): Tensor {
  const rest = x.shape.slice(1);
  const size = elementCount(rest);
  const out = Tensor.unfilled([count, ...rest]);
  out.data.set(x.data.subarray(first * size, (first + count) * size));
  return out;
}

/** Batches of equal items one after the other. */
export function stacked(first: Tensor, second: Tensor): Tensor {
  const out = Tensor.unfilled([first.shape[0]! + second.shape[0]!, ...first.shape.slice(1)]);
  out.data.set(first.data);
  out.data.set(second.data, first.size);
  return out;
}

/** Pictures [B, H, W, C] as [B, 1, H, W * C]: planes, for operations to which colours are columns. */
export function asPlanes(image: Tensor): Tensor {
  const [batch, height, width, channels] = fourSides("asPlanes", image, "[B, H, W, C]");
  return image.reshape([batch, 1, height, width * channels]);
}

/** Values of [B, H, W], each `count` times side by side, as [B, H, W, count]. */
export function widened(mask: Tensor, count: number): Tensor {
  const out = Tensor.unfilled([...mask.shape, count]);
  const [from, into] = [mask.data, out.data];
  for (let i = 0, to = 0; i < from.length; i++) {
    const value = from[i]!;
    for (let k = 0; k < count; k++) into[to++] = value;
  }
  return out;
}
