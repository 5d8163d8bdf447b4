import { LatentkitError } from "../errors.js";
import { fourSides } from "./shape.js";
import { Tensor } from "./tensor.js";

/** The first `count` channels of an image [B, H, W, C], the image itself where it has just these. */
export function firstChannels(image: Tensor, count: number): Tensor {
  const [batch, height, width, channels] = fourSides("firstChannels", image, "[B, H, W, C]");
  if (channels === count) return image;
  if (channels < count) {
    throw new LatentkitError(
      "tensor.bad-shape",
      `Image: expected at least ${count} channels, received shape [${image.shape.join(", ")}].`,
    );
  }
  const out = Tensor.unfilled([batch, height, width, count]);
  for (let pixel = 0, to = 0; to < out.size; pixel++) {
    for (let channel = 0; channel < count; channel++) out.data[to++] = image.data[pixel * channels + channel]!;
  }
  return out;
}

/** One channel of an image [B, H, W, C] as [B, H, W]. */
export function channelOf(image: Tensor, channel: number): Tensor {
  const [batch, height, width, channels] = fourSides("channelOf", image, "[B, H, W, C]");
  if (!(channel < channels)) {
    throw new LatentkitError(
      "tensor.bad-shape",
      `Image: expected more than ${channel} channels, received ${channels}.`,
    );
  }
  const out = Tensor.unfilled([batch, height, width]);
  for (let pixel = 0; pixel < out.size; pixel++) out.data[pixel] = image.data[pixel * channels + channel]!;
  return out;
}

/** 1 - x */
export function inverted(x: Tensor): Tensor {
  const out = Tensor.unfilled(x.shape);
  // a loop: map with a function makes an object of every number
  for (let i = 0; i < out.size; i++) out.data[i] = 1 - x.data[i]!;
  return out;
}
