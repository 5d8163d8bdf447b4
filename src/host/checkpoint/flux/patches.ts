import { describe, LatentkitError } from "../../../base/errors.js";
import { cycled } from "../../../tensor/parts.js";
import { Tensor } from "../../../tensor/tensor.js";
import type { Conditioning } from "../../types.js";
import type { Position } from "../networks/sinusoids.js";

/** Order of the numbers of a patch: all cells of a channel after each other, or all channels of a cell. */
export type PatchOrder = "cells-of-channels" | "channels-of-cells";

/** Cells on a side of a patch: those of pictures with cells of 16 pixels are one cell. */
type PatchSide = 1 | 2;

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

/** Where references stand: beside the picture and each other, behind it at the same place, or diagonally after it. */
export type ReferencePlaces = "offset" | "index" | "uxo";

export type Sides = readonly [height: number, width: number];

/** Where the tokens of a kind of models stand, and how their positions turn the heads. */
export interface TokenPlaces {
  readonly patchSide: PatchSide;
  /** Base of the angles' periods. */
  readonly theta: number;
  /** Shares of the position's axes in a head, in sixteenths. */
  readonly shares: readonly number[];
  /** A head is a multiple of it, so that each axis turns pairs. */
  readonly headStep: number;
  /** Ways of placing references that it has learned, the usual one first. */
  readonly references: readonly ReferencePlaces[];
  /** First number of the position of the nth reference behind the picture, divided by n. */
  readonly depth: number;
  /** Position of a token of the text. */
  text(index: number): Position;
}

export const FLUX_PLACES: TokenPlaces = {
  patchSide: 2,
  theta: 10_000,
  shares: [2, 7, 7],
  headStep: 32,
  references: ["offset", "index", "uxo"],
  depth: 1,
  text: () => [0, 0, 0],
};

export const FLUX2_PLACES: TokenPlaces = {
  patchSide: 1,
  theta: 2000,
  shares: [4, 4, 4, 4],
  headStep: 8,
  references: ["index", "uxo"],
  depth: 10,
  text: (index) => [0, 0, 0, index],
};

/** Numbers of a head that turn by each axis of the position. */
export const fluxAxes = (headSize: number, { shares } = FLUX_PLACES): readonly number[] =>
  shares.map((share) => (share * headSize) / 16);

/** Positions of a text's tokens, then of a picture's patches, then of those of its references; sides in cells of latents. */
export function fluxPositions(
  texts: number,
  picture: Sides,
  references: readonly Sides[] = [],
  places: ReferencePlaces = "offset",
  kind: TokenPlaces = FLUX_PLACES,
): Position[] {
  const { patchSide, depth } = kind;
  const positions: Position[] = Array.from({ length: texts }, (_, index) => kind.text(index));
  const append = (sides: Sides, index: number, down: number, right: number): void => {
    const [rows, columns] = patchSides(sides, patchSide);
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++)
        positions.push([index * depth, row + down, column + right, 0].slice(0, kind.shares.length));
  };
  append(picture, 0, 0, 0);
  for (const { sides, index, offset } of placed(picture, references, places, patchSide)) {
    const [down, right] = patchSides(offset, patchSide);
    append(sides, index, down, right);
  }
  return positions;
}

/** Where a reference stands. */
interface Place {
  readonly sides: Sides;
  /** 0 in the picture's plane, else the number of the plane behind it. */
  readonly index: number;
  /** Distance from the picture's corner in cells. */
  readonly offset: Sides;
}

/** Where references stand beside a picture and each other; all sides in cells of latents. */
export function placed(
  picture: Sides,
  references: readonly Sides[],
  places: ReferencePlaces,
  patchSide: PatchSide,
): Place[] {
  if (places === "index") return references.map((sides, i) => ({ sides, index: i + 1, offset: [0, 0] }));
  if (places === "uxo") {
    let [down, right] = patchSides(picture, patchSide).map((side) => patchSide * side) as [number, number];
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

/** Order of a patch's numbers. */
export const FLUX_PATCHES = "cells-of-channels";
/** Name of the label that holds the patches of references; the network has them after those of the latent. */
export const REFERENCES = "references";

/** References of an entry: latents in the VAE's units, and where they stand. */
export interface References<Places = string> {
  readonly latents: readonly Tensor[];
  readonly places: Places;
}

/** References that a family takes. */
export interface ReferenceRules<Places> {
  readonly channels: number;
  /** Names of where they may stand, the usual one first. */
  readonly places: readonly Places[];
}

/** The references of an entry. Fails with value.invalid and tensor.bad-shape for options of other kinds. */
export function referencesBy<Places>(
  { channels, places: allowed }: ReferenceRules<Places>,
  [, options]: Conditioning[number],
): References<Places> {
  const { reference_latents: latents = [], reference_latents_method: places = allowed[0] } = options;
  const isLatent = (value: unknown): boolean =>
    value instanceof Tensor && value.shape.length === 4 && value.size > 0 && value.shape[1] === channels;
  if (!Array.isArray(latents) || !latents.every(isLatent)) {
    const received = describe(Array.isArray(latents) ? latents.find((value) => !isLatent(value)) : latents);
    const expected = `reference latents [B, ${channels}, h, w]`;
    throw new LatentkitError("tensor.bad-shape", `conditioning: expected ${expected}, received ${received}.`);
  }
  const known = allowed.find((each) => each === places);
  if (known === undefined) throw placesError(allowed, places);
  return { latents, places: known };
}

/** Error of a conditioning that has references at other places than a model has learned. */
export function placesError(allowed: readonly unknown[], received: unknown): LatentkitError {
  const expected = `reference_latents_method ${allowed.join(" or ")}`;
  return new LatentkitError("value.invalid", `conditioning: expected ${expected}, received ${describe(received)}.`);
}

/** Whether the tokens of all entries stand at the same places. */
export function standAlike(
  [first, ...others]: Conditioning,
  referencesOf: (entry: Conditioning[number]) => References,
): boolean {
  const placesOf = (entry: Conditioning[number]): string => {
    const { latents, places } = referencesOf(entry);
    return JSON.stringify([entry[0].shape[1], places, latents.map(({ shape }) => shape.slice(2))]);
  };
  const places = first === undefined ? "" : placesOf(first);
  return others.every((entry) => placesOf(entry) === places);
}

/** Patches of all references [1 or n, L, numbers], in the model's units by `units`; undefined for none. */
export function patchesOfReferences(
  { latents }: References,
  units: (latent: Tensor) => Tensor,
  side: PatchSide = 2,
): Tensor | undefined {
  if (latents.length === 0) return undefined;
  const items = Math.max(...latents.map(({ shape }) => shape[0]!));
  return joinedTokens(latents.map((latent) => patchesOf(units(cycled(latent, items)), FLUX_PATCHES, side)));
}
