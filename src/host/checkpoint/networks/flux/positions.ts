import { patchSides } from "../patches.js";
import type { Position } from "../rotations.js";

/** Where references stand: beside the picture and each other, behind it at the same place, or diagonally after it. */
export type ReferencePlaces = "offset" | "index" | "uxo";

type Sides = readonly [height: number, width: number];

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

interface Place {
  readonly sides: Sides;
  /** First number of its positions. */
  readonly index: number;
  /** Distance from the picture's corner in cells. */
  readonly offset: Sides;
}

function placed(picture: Sides, references: readonly Sides[], places: ReferencePlaces): Place[] {
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
