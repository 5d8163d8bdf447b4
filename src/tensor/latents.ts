import { loadNative } from "../native/load.js";
import { produce } from "./device/compute.js";
import { requireInside } from "./parts.js";
import type { LatentFormat } from "./sampling/latent-format.js";
import { fourSides, maskSides, requireSameShape } from "./shape.js";
import { badShape, Tensor } from "./tensor.js";

/**
 * A copy of destination [B, C, H, W] with source * mask added to the area of source, [B, C, h, w], from row y and column
 * x on. The mask, [1 or B, h, w], is shared by the channels. Product and sum are rounded to float32. `out` may be the
 * destination.
 */
export function addMasked(
  destination: Tensor,
  source: Tensor,
  mask: Tensor,
  y: number,
  x: number,
  out?: Tensor,
): Tensor {
  const shape = fourSides("addMasked destination", destination);
  const [batch, channels, height, width] = fourSides("addMasked source", source);
  if (batch !== shape[0] || channels !== shape[1])
    throw badShape("addMasked", `a source [${shape[0]}, ${shape[1]}, h, w]`, source);
  requireInside("addMasked area", { top: y, left: x, height, width }, shape[2], shape[3]);
  const [maskBatch, maskHeight, maskWidth] = maskSides("addMasked", mask);
  if ((maskBatch !== 1 && maskBatch !== batch) || maskHeight !== height || maskWidth !== width)
    throw badShape("addMasked", `a mask [1 or ${batch}, ${height}, ${width}]`, mask);
  return produce(
    "addMasked",
    destination,
    destination.size,
    out,
    (at, to, result) => {
      at.copy(result, destination, 0);
      at.ops.addMasked(to, shape, at.in(source), [y, x, height, width], at.in(mask), maskBatch);
    },
    destination,
    source,
    mask,
  );
}

/**
 * Interpolates the channel vectors of two tensors [B, C, …], each cell by itself: directions mix and become unit vectors
 * again, lengths mix linearly; `share` is that of a. A vector of length 0 has the direction 0. Computed in double.
 */
export function interpolateDirections(a: Tensor, b: Tensor, share: number): Tensor {
  requireSameShape("interpolateDirections", a, b);
  const out = Tensor.unfilled(a.shape);
  const [batch = 0, channels = 0] = a.shape;
  const cells = a.size / Math.max(1, batch * channels);
  const vector = new Float64Array(channels);
  const [dataA, dataB, into] = [a.data, b.data, out.data];
  for (let item = 0; item < batch; item++) {
    const first = item * channels * cells;
    for (let cell = first; cell < first + cells; cell++) {
      const [lengthA, lengthB] = [lengthAt(dataA, cell, cells, channels), lengthAt(dataB, cell, cells, channels)];
      let squares = 0;
      for (let channel = 0, at = cell; channel < channels; channel++, at += cells) {
        // 0 / 0 and inf / inf do not give a direction
        const mixed = (dataA[at]! / lengthA || 0) * share + (dataB[at]! / lengthB || 0) * (1 - share);
        vector[channel] = mixed;
        squares += mixed * mixed;
      }
      const [unit, length] = [Math.sqrt(squares), lengthA * share + lengthB * (1 - share)];
      for (let channel = 0, at = cell; channel < channels; channel++, at += cells)
        into[at] = (vector[channel]! / unit || 0) * length;
    }
  }
  return out;
}

/** Length of the vector of one cell; `cells` is the distance between its channels. */
function lengthAt(data: Float32Array, cell: number, cells: number, channels: number): number {
  let squares = 0;
  for (let channel = 0, at = cell; channel < channels; channel++, at += cells) squares += data[at]! * data[at]!;
  return Math.sqrt(squares);
}

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
