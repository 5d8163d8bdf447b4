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
