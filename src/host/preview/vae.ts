import { describe, LatentkitError } from "../../base/errors.js";
import { latentToRgb } from "../../tensor/latents.js";
import { resizeToImage } from "../../tensor/ops.js";
import type { LatentFormat, LatentRgb } from "../../tensor/sampling/latent-format.js";
import { fourSides } from "../../tensor/shape.js";
import { elementCount, Tensor } from "../../tensor/tensor.js";
import type { Vae } from "../types.js";

/** Side of a latent cell in pixels. */
const CELL = 8;

/**
 * Makes a vae without weights: a latent cell is the mean colour of its 8 x 8 pixels times the inverse of the published
 * latent-to-RGB factors. encode crops the middle to multiples of 8; decode(encode(x)) is a blurred x.
 */
export function previewVae(table: LatentRgb): Vae {
  const inverse = rightInverse(table.factors);
  const [weights, bias] = [Float64Array.from(table.factors.flat()), Float64Array.from(table.bias)];
  return {
    encode: async (image) => encode(image, table, inverse),
    decode: async (latent) => decode(latent, table.format, weights, bias),
  };
}

/** Function from a colour in 0 … 1 to its latent in the model's units. */
export function colourToLatent({ factors, bias }: LatentRgb): (colour: readonly number[]) => number[] {
  const inverse = rightInverse(factors);
  return (colour) =>
    inverse.map((weights) => weights.reduce((sum, weight, k) => sum + (2 * colour[k]! - 1 - bias[k]!) * weight, 0));
}

/** image [B, H, W, 3] in 0 … 1 to latent [B, C, H / 8, W / 8]. */
function encode(image: Tensor, { format, bias }: LatentRgb, inverse: readonly (readonly number[])[]): Tensor {
  const [batch, height, width, colours] = fourSides("VAE encode", image, "[B, H, W, 3]");
  const [rows, columns] = [Math.floor(height / CELL), Math.floor(width / CELL)];
  if (colours !== 3 || rows === 0 || columns === 0) {
    throw new LatentkitError(
      "tensor.bad-shape",
      `VAE encode: expected an image [B, H, W, 3] of at least ${CELL} x ${CELL} pixels, received ${describe(image)}.`,
    );
  }
  const plane = rows * columns;
  const latent = Tensor.unfilled([batch, format.channels, rows, columns]);
  const [pixels, cells] = [image.data, latent.data];
  const top = Math.floor((height % CELL) / 2);
  const left = Math.floor((width % CELL) / 2);
  // one array for all cells: a batch would otherwise allocate thousands for each picture
  const mean = new Float64Array(3);
  for (let item = 0; item < batch; item++) {
    for (let cell = 0; cell < plane; cell++) {
      const y = top + CELL * Math.floor(cell / columns);
      const x = left + CELL * (cell % columns);
      blockMean(pixels, (item * height + y) * width + x, width, mean);
      for (let channel = 0; channel < format.channels; channel++) {
        const weights = inverse[channel]!;
        let value = 0;
        for (let colour = 0; colour < 3; colour++) value += (2 * mean[colour]! - 1 - bias[colour]!) * weights[colour]!;
        cells[(item * format.channels + channel) * plane + cell] = value / format.scaleFactor + format.shiftFactor;
      }
    }
  }
  return latent;
}

/** Writes the mean colour of the 8 x 8 pixels from pixel `from` on into `mean`. */
function blockMean(data: Float32Array, from: number, width: number, mean: Float64Array): void {
  let [red, green, blue] = [0, 0, 0];
  for (let y = 0; y < CELL; y++) {
    for (let i = (from + y * width) * 3; i < (from + y * width + CELL) * 3; i += 3) {
      red += data[i]!;
      green += data[i + 1]!;
      blue += data[i + 2]!;
    }
  }
  mean[0] = red / 64;
  mean[1] = green / 64;
  mean[2] = blue / 64;
}

/** latent [B, C, h, w] to image [B, 8h, 8w, 3] in 0 … 1; NaN is black. */
function decode(latent: Tensor, format: LatentFormat, weights: Float64Array, bias: Float64Array): Tensor {
  const [batch, channels, rows, columns] = fourSides("VAE decode", latent);
  if (channels !== format.channels || rows === 0 || columns === 0) {
    throw new LatentkitError(
      "tensor.bad-shape",
      `VAE decode: expected a latent [B, ${format.channels}, h, w] of the ${format.name} format, received ${describe(latent)}.`,
    );
  }
  elementCount([batch, rows * CELL, columns * CELL, 3]);
  const small = latentToRgb(latent, format, weights, bias);
  return resizeToImage(small, rows * CELL, columns * CELL);
}

/** W [C, 3] with W'F = 1 for factors F [C, 3]: F (F'F)^-1, the shortest latent of a colour. */
function rightInverse(factors: LatentRgb["factors"]): number[][] {
  const gram = [0, 1, 2].map((i) => [0, 1, 2].map((j) => factors.reduce((sum, row) => sum + row[i]! * row[j]!, 0)));
  const at = (i: number, j: number): number => gram[i % 3]![j % 3]!;
  // the cofactor over cyclic indices carries its sign
  const cofactor = (i: number, j: number): number =>
    at(i + 1, j + 1) * at(i + 2, j + 2) - at(i + 1, j + 2) * at(i + 2, j + 1);
  const determinant = [0, 1, 2].reduce((sum, j) => sum + at(0, j) * cofactor(0, j), 0);
  return factors.map((row) =>
    [0, 1, 2].map((j) => row.reduce((sum, factor, i) => sum + (factor * cofactor(j, i)) / determinant, 0)),
  );
}
