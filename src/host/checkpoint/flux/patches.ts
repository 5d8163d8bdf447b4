import { Tensor } from "../../../tensor/tensor.js";
import type { Position } from "../networks/sinusoids.js";

/** Order of the numbers of a patch: all cells of a channel after each other, or all channels of a cell. */
export type PatchOrder = "cells-of-channels" | "channels-of-cells";

/** Cells on a side of a patch. */
const SIDE = 2;
const CELLS = SIDE * SIDE;

/** Sides of a picture in patches; an odd side has half a patch more. */
export const patchSides = ([height, width]: readonly [number, number]): [rows: number, columns: number] => [
  Math.ceil(height / SIDE),
  Math.ceil(width / SIDE),
];

/** Patches of 2 x 2 cells of [B, C, h, w] as tokens [B, L, 4C], row by row. An odd side begins again at its end. */
export function patchesOf(picture: Tensor, order: PatchOrder): Tensor {
  const [items, channels, height, width] = picture.shape as [number, number, number, number];
  const [rows, columns] = patchSides([height, width]);
  const patches = Tensor.unfilled([items, rows * columns, CELLS * channels]);
  const { data } = picture;
  const numbers = numbersOf(channels, order);
  let at = 0;
  for (let item = 0; item < items; item++)
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++)
        for (const [channel, cell] of numbers) {
          const y = (SIDE * row + (cell >> 1)) % height;
          const x = (SIDE * column + (cell & 1)) % width;
          patches.data[at++] = data[((item * channels + channel) * height + y) * width + x]!;
        }
  return patches;
}

/** The picture [B, C, height, width] whose patches come first in [B, L, 4C]; a cell beyond an odd side is dropped. */
export function pictureOf(patches: Tensor, [height, width]: readonly [number, number], order: PatchOrder): Tensor {
  const [items, length, size] = patches.shape as [number, number, number];
  const [rows, columns] = patchSides([height, width]);
  const channels = size / CELLS;
  const numbers = numbersOf(channels, order);
  const picture = Tensor.unfilled([items, channels, height, width]);
  for (let item = 0; item < items; item++)
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++) {
        let at = (item * length + row * columns + column) * size;
        for (const [channel, cell] of numbers) {
          const [y, x] = [SIDE * row + (cell >> 1), SIDE * column + (cell & 1)];
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
function numbersOf(channels: number, order: PatchOrder): readonly (readonly [channel: number, cell: number])[] {
  const isByChannel = order === "cells-of-channels";
  return Array.from({ length: CELLS * channels }, (_, index) =>
    isByChannel ? [Math.floor(index / CELLS), index % CELLS] : [index % channels, Math.floor(index / channels)],
  );
}

/** Where references stand: beside the picture and each other, behind it at the same place, or diagonally after it. */
export type ReferencePlaces = "offset" | "index" | "uxo";

export type Sides = readonly [height: number, width: number];

/** Base of the angles' periods. */
export const FLUX_THETA = 10_000;
/** Shares of the position's three axes in a head. */
const SHARES = [2, 7, 7];
/** A head is a multiple of it. */
export const HEAD_STEP = 2 * SHARES.reduce((sum, share) => sum + share);

/** Numbers of a head that turn by each axis of the position. */
export const fluxAxes = (headSize: number): readonly number[] =>
  SHARES.map((share) => (2 * share * headSize) / HEAD_STEP);

/** Positions of a text's tokens, then of a picture's patches, then of those of its references; sides in cells of latents. */
export function fluxPositions(
  texts: number,
  picture: Sides,
  references: readonly Sides[] = [],
  places: ReferencePlaces = "offset",
): Position[] {
  const positions: Position[] = Array.from({ length: texts }, () => [0, 0, 0]);
  const append = (sides: Sides, index: number, down: number, right: number): void => {
    const [rows, columns] = patchSides(sides);
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++) positions.push([index, row + down, column + right]);
  };
  append(picture, 0, 0, 0);
  for (const { sides, index, offset } of placed(picture, references, places)) {
    const [down, right] = patchSides(offset);
    append(sides, index, down, right);
  }
  return positions;
}

/** Where a reference stands. */
export interface Place {
  readonly sides: Sides;
  /** First number of its positions. */
  readonly index: number;
  /** Distance from the picture's corner in cells. */
  readonly offset: Sides;
}

/** Where references stand beside a picture and each other; all sides in cells of latents. */
export function placed(picture: Sides, references: readonly Sides[], places: ReferencePlaces): Place[] {
  if (places === "index") return references.map((sides, i) => ({ sides, index: i + 1, offset: [0, 0] }));
  if (places === "uxo") {
    let [down, right] = patchSides(picture).map((side) => 2 * side) as [number, number];
    return references.map((sides) => {
      const offset: Sides = [down, right];
      down += sides[0];
      right += sides[1];
      return { sides, index: 0, offset };
    });
  }
  let [height, width] = [0, 0];
  return references.map((sides) => {
    // the way in which all of them together are less long
    const isBeside = sides[0] + height > sides[1] + width;
    const offset: Sides = isBeside ? [0, width] : [height, 0];
    height = Math.max(height, sides[0] + offset[0]);
    width = Math.max(width, sides[1] + offset[1]);
    return { sides, index: 1, offset };
  });
}
