import { fourSides } from "./shape.js";
import { badShape, Tensor } from "./tensor.js";

/** First `count` channels of an image [B, H, W, C]; the image itself if it has no others. */
export function firstChannels(image: Tensor, count: number): Tensor {
  const [batch, height, width, channels] = fourSides("firstChannels", image, "[B, H, W, C]");
  if (channels === count) return image;
  if (channels < count) throw badShape("Image", `at least ${count} channels`, image);
  const out = Tensor.unfilled([batch, height, width, count]);
  const [from, into] = [image.data, out.data];
  for (let pixel = 0, to = 0; to < into.length; pixel++) {
    for (let channel = 0; channel < count; channel++) into[to++] = from[pixel * channels + channel]!;
  }
  return out;
}

/** One channel of an image [B, H, W, C] as [B, H, W]. */
export function channelOf(image: Tensor, channel: number): Tensor {
  const [batch, height, width, channels] = fourSides("channelOf", image, "[B, H, W, C]");
  if (!(channel < channels)) throw badShape("Image", `more than ${channel} channels`, `${channels}`);
  const out = Tensor.unfilled([batch, height, width]);
  const [from, into] = [image.data, out.data];
  for (let pixel = 0; pixel < into.length; pixel++) into[pixel] = from[pixel * channels + channel]!;
  return out;
}

/** 1 - x */
export function inverted(x: Tensor): Tensor {
  const out = Tensor.unfilled(x.shape);
  const [from, into] = [x.data, out.data];
  // a loop: map with a function makes an object of every number
  for (let i = 0; i < into.length; i++) into[i] = 1 - from[i]!;
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

/** Luma of the red, green and blue value from `at` on, ITU-R BT.601. */
export const lumaAt = (data: Float32Array, at: number): number =>
  0.299 * data[at]! + 0.587 * data[at + 1]! + 0.114 * data[at + 2]!;

/**
 * Luma and colour differences of pictures [B, H, W, 3], each as grey pictures of that shape, the differences around 0.5:
 * ITU-R BT.601 with the rounded factors 0.564 and 0.713.
 */
export function yuvOf(image: Tensor): [Tensor, Tensor, Tensor] {
  const [luma, blue, red] = [Tensor.unfilled(image), Tensor.unfilled(image), Tensor.unfilled(image)];
  const [from, y, u, v] = [image.data, luma.data, blue.data, red.data];
  for (let at = 0; at < from.length; at += 3) {
    const light = lumaAt(from, at);
    const blueDifference = (from[at + 2]! - light) * 0.564 + 0.5;
    const redDifference = (from[at]! - light) * 0.713 + 0.5;
    // fill would take ten times as long for three values
    for (let k = at; k < at + 3; k++) {
      y[k] = light;
      u[k] = blueDifference;
      v[k] = redDifference;
    }
  }
  return [luma, blue, red];
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
