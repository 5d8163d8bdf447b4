import { fourSides } from "../shape.js";
import { Tensor } from "../tensor.js";

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

/** Pictures [B, H, W, C] as planes [B, C, H, W]. */
export function channelsFirst(image: Tensor): Tensor {
  const [batch, height, width, channels] = fourSides("channelsFirst", image, "[B, H, W, C]");
  return transposed(image, batch, height * width, channels).reshape([batch, channels, height, width]);
}

/** Planes [B, C, H, W] as pictures [B, H, W, C]. */
export function channelsLast(planes: Tensor): Tensor {
  const [batch, channels, height, width] = fourSides("channelsLast", planes);
  return transposed(planes, batch, channels, height * width).reshape([batch, height, width, channels]);
}

/** A new tensor [batch, columns, rows] of values [batch, rows, columns]. */
function transposed(x: Tensor, batch: number, rows: number, columns: number): Tensor {
  const out = Tensor.unfilled([batch, columns, rows]);
  const [from, into] = [x.data, out.data];
  for (let item = 0; item < batch; item++) {
    const first = item * rows * columns;
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++)
        into[first + column * rows + row] = from[first + row * columns + column]!;
  }
  return out;
}
