import { loadNative } from "../native/load.js";
import type { LatentFormat } from "./sampling/latent-format.js";
import { fourSides } from "./shape.js";
import { Tensor } from "./tensor.js";

/**
 * Colours of a latent [B, C, h, w] as planes [B, 3, h, w] in 0 … 1: the latent in the model's units times `factors`, three
 * for each channel, plus `bias`, three. Computed in double, channel by channel.
 */
export function latentToRgb(latent: Tensor, format: LatentFormat, factors: Float64Array, bias: Float64Array): Tensor {
  const [batch, , height, width] = fourSides("latentToRgb", latent);
  const colours = Tensor.unfilled([batch, 3, height, width]);
  const { shiftFactor, scaleFactor } = format;
  loadNative().latentToRgb(colours.data, latent.data, batch, factors, bias, shiftFactor, scaleFactor);
  return colours;
}
