import { Tensor } from "../tensor.js";

/**
 * Luma and colour differences of pictures [B, H, W, 3], each as grey pictures of that shape, the differences around 0.5:
 * ITU-R BT.601 with the rounded factors 0.564 and 0.713.
 */
export function yuvOf(image: Tensor): [Tensor, Tensor, Tensor] {
  const planes: [Tensor, Tensor, Tensor] = [
    Tensor.unfilled(image.shape),
    Tensor.unfilled(image.shape),
    Tensor.unfilled(image.shape),
  ];
  const [from, y, u, v] = [image.data, planes[0].data, planes[1].data, planes[2].data];
  for (let at = 0; at < from.length; at += 3) {
    const red = from[at]!;
    const blue = from[at + 2]!;
    const luma = 0.299 * red + 0.587 * from[at + 1]! + 0.114 * blue;
    const blueDifference = (blue - luma) * 0.564 + 0.5;
    const redDifference = (red - luma) * 0.713 + 0.5;
    // fill would take ten times as long for three values
    for (let k = at; k < at + 3; k++) {
      y[k] = luma;
      u[k] = blueDifference;
      v[k] = redDifference;
    }
  }
  return planes;
}

/** Pictures [B, H, W, 3] from luma and colour differences: the means of all channels of three pictures of one size. */
export function rgbOf(luma: Tensor, blueDifference: Tensor, redDifference: Tensor): Tensor {
  const out = Tensor.unfilled([...luma.shape.slice(0, 3), 3]);
  const meanAt = ({ data, shape }: Tensor, pixel: number): number => {
    const channels = shape[3]!;
    let sum = 0;
    for (let k = 0; k < channels; k++) sum += data[pixel * channels + k]!;
    return sum / channels;
  };
  for (let pixel = 0, to = 0; to < out.size; pixel++) {
    const y = meanAt(luma, pixel);
    const u = meanAt(blueDifference, pixel) - 0.5;
    const v = meanAt(redDifference, pixel) - 0.5;
    out.data[to++] = y + 1.403 * v;
    out.data[to++] = y - 0.714 * v - 0.344 * u;
    out.data[to++] = y + 1.773 * u;
  }
  return out;
}
