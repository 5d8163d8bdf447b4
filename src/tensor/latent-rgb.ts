import { loadNative } from "../native/load.js";
import type { LatentFormat } from "./sampling/latent-format.js";
import { fourSides } from "./shape.js";
import { Tensor } from "./tensor.js";

/**
 * A latent [B, C, h, w] of the format as colours, planes [B, 3, h, w]: `factors`, three a channel, of what the model sees,
 * and `bias`, three, from -1 … 1 to 0 … 1. In double, channel by channel.
 */
export function latentToRgb(latent: Tensor, format: LatentFormat, factors: Float64Array, bias: Float64Array): Tensor {
  const [batch, , height, width] = fourSides("latentToRgb", latent);
  const colours = Tensor.unfilled([batch, 3, height, width]);
  const { shiftFactor, scaleFactor } = format;
  loadNative().latentToRgb(colours.data, latent.data, batch, factors, bias, shiftFactor, scaleFactor);
  return colours;
}
