import { Tensor } from "../../../tensor/tensor.js";

/** Order of the numbers of a patch: all cells of a channel after each other, or all channels of a cell. */
export type PatchOrder = "cells-of-channels" | "channels-of-cells";

/** Cells on a side of a patch: those of pictures with cells of 16 pixels are one cell. */
export type PatchSide = 1 | 2;

/** Sides of a picture in patches; an odd side has half a patch more. */
export const patchSides = (
  [height, width]: readonly [number, number],
  side: PatchSide,
): [rows: number, columns: number] => [Math.ceil(height / side), Math.ceil(width / side)];

/** Patches of 2 x 2 cells of [B, C, h, w] as tokens [B, L, 4C], row by row. An odd side begins again at its end. */
export function patchesOf(picture: Tensor, order: PatchOrder, side: PatchSide = 2): Tensor {
  const [items, channels, height, width] = picture.shape as [number, number, number, number];
  const [rows, columns] = patchSides([height, width], side);
  const patches = Tensor.unfilled([items, rows * columns, side * side * channels]);
  const { data } = picture;
  const numbers = numbersOf(channels, order, side);
  let at = 0;
  for (let item = 0; item < items; item++)
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++)
        for (const [channel, cell] of numbers) {
          const y = (side * row + (cell >> 1)) % height;
          const x = (side * column + (cell & 1)) % width;
          patches.data[at++] = data[((item * channels + channel) * height + y) * width + x]!;
        }
  return patches;
}

/** The picture [B, C, height, width] whose patches come first in [B, L, 4C]; a cell beyond an odd side is dropped. */
export function pictureOf(
  patches: Tensor,
  [height, width]: readonly [number, number],
  order: PatchOrder,
  side: PatchSide = 2,
): Tensor {
  const [items, length, size] = patches.shape as [number, number, number];
  const [rows, columns] = patchSides([height, width], side);
  const channels = size / (side * side);
  const numbers = numbersOf(channels, order, side);
  const picture = Tensor.unfilled([items, channels, height, width]);
  for (let item = 0; item < items; item++)
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++) {
        let at = (item * length + row * columns + column) * size;
        for (const [channel, cell] of numbers) {
          const [y, x] = [side * row + (cell >> 1), side * column + (cell & 1)];
          const value = patches.data[at++]!;
          if (y < height && x < width) picture.data[((item * channels + channel) * height + y) * width + x] = value;
        }
      }
  return picture;
}

/** Tokens [B, L, n] of several pictures after each other; one of a single item serves all. */
export function joinedTokens(parts: readonly Tensor[]): Tensor {
  const items = Math.max(...parts.map(({ shape }) => shape[0]!));
  const length = parts.reduce((sum, { shape }) => sum + shape[1]!, 0);
  const joined = Tensor.unfilled([items, length, parts[0]!.shape[2]!]);
  let at = 0;
  for (let item = 0; item < items; item++)
    for (const { data, shape } of parts) {
      const size = shape[1]! * shape[2]!;
      const start = shape[0] === 1 ? 0 : item * size;
      joined.data.set(data.subarray(start, start + size), at);
      at += size;
    }
  return joined;
}

/** Channel and cell of each number of a patch. */
function numbersOf(
  channels: number,
  order: PatchOrder,
  side: PatchSide,
): readonly (readonly [channel: number, cell: number])[] {
  const isByChannel = order === "cells-of-channels";
  const cells = side * side;
  return Array.from({ length: cells * channels }, (_, index) =>
    isByChannel ? [Math.floor(index / cells), index % cells] : [index % channels, Math.floor(index / channels)],
  );
}
