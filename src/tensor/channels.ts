import { LatentkitError } from "../base/errors.js";
import { fourSides } from "./shape.js";
import { Tensor } from "./tensor.js";

/** First `count` channels of an image [B, H, W, C]; the image itself where it has no others. */
export function firstChannels(image: Tensor, count: number): Tensor {
  const [batch, height, width, channels] = fourSides("firstChannels", image, "[B, H, W, C]");
  if (channels === count) return image;
  if (channels < count) {
    const message = `Image: expected at least ${count} channels, received shape [${image.shape.join(", ")}].`;
    throw new LatentkitError("tensor.bad-shape", message);
  }
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
  if (!(channel < channels)) {
    const message = `Image: expected more than ${channel} channels, received ${channels}.`;
    throw new LatentkitError("tensor.bad-shape", message);
  }
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
