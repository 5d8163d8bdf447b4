import { requireSameShape } from "./shape.js";
import { Tensor } from "./tensor.js";

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
        // 0 / 0 and inf / inf are no direction
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
