import { cos, pow, sin } from "../../../native/elementary.js";
import { Tensor } from "../../../tensor/tensor.js";

/** Position of a token on each axis. */
export type Position = readonly number[];

/** The tables of a rotation, as a graph takes them. */
export interface RotationTables {
  /** Each [positions, sum of axes / 2]. */
  readonly cos: Tensor;
  readonly sin: Tensor;
}

/**
 * Cosines and sines of rotary embeddings with several axes, side by side: pair j of an axis of `size` numbers turns by
 * position · theta^(-2j / size). Computed in double precision and rounded once.
 */
export function rotationTables(positions: readonly Position[], axes: readonly number[], theta: number): RotationTables {
  const width = axes.reduce((sum, size) => sum + size / 2, 0);
  const tables = { cos: Tensor.zeros([positions.length, width]), sin: Tensor.zeros([positions.length, width]) };
  let at = 0;
  for (const [axis, size] of axes.entries()) {
    const frequencies = Array.from({ length: size / 2 }, (_, j) => pow(theta, (-2 * j) / size));
    // positions are few, tokens are many
    const angles = new Map<number, readonly (readonly [cos: number, sin: number])[]>();
    for (const [row, position] of positions.entries()) {
      const place = position[axis]!;
      let each = angles.get(place);
      if (each === undefined) {
        each = frequencies.map((frequency) => [cos(place * frequency), sin(place * frequency)]);
        angles.set(place, each);
      }
      for (const [j, pair] of each.entries())
        [tables.cos.data[row * width + at + j], tables.sin.data[row * width + at + j]] = pair;
    }
    at += size / 2;
  }
  return tables;
}

/** Positions of Z-Image's two sequences: captions, padded, one after another; cells by row and column after them. */
export function zImagePositions(
  captions: number,
  [rows, columns]: readonly [number, number],
  padding: number,
): { readonly caption: readonly Position[]; readonly image: readonly Position[] } {
  const up = (length: number): number => Math.ceil(length / padding) * padding;
  const length = up(captions);
  const cells = rows * columns;
  return {
    caption: Array.from({ length }, (_, index) => [index + 1, 0, 0]),
    image: Array.from({ length: up(cells) }, (_, index) =>
      index < cells ? [length + 1, Math.floor(index / columns), index % columns] : [0, 0, 0],
    ),
  };
}
