import { describe, LatentkitError } from "../../../base/errors.js";
import { resizeImage } from "../../../tensor/resize.js";
import { roundHalfEven } from "../../../tensor/rounding.js";
import { Tensor } from "../../../tensor/tensor.js";
import type { Position } from "../networks/sinusoids.js";

/** Pixels along a side of a patch. */
export const PATCH = 14;
/** Patches along a side of a unit, which is a token of the language model. */
const UNIT = 2;
/** Units along a side of a window. */
const WINDOW = 4;
/** Patches of a whole window. */
export const WINDOW_PATCHES = UNIT * WINDOW * UNIT * WINDOW;
/** Equal frames that a picture is seen as. */
const FRAMES = 2;
const COLOURS = 3;
/** Numbers of a patch. */
export const PATCH_NUMBERS = COLOURS * FRAMES * PATCH * PATCH;
/** Mean and deviation of each colour. */
const MEAN = [0.48145466, 0.4578275, 0.40821073] as const;
const DEVIATION = [0.26862954, 0.26130258, 0.27577711] as const;
const FEWEST_PIXELS = 3136;
const MOST_PIXELS = 12_845_056;

type Sides = readonly [height: number, width: number];

/** A picture as the tower takes it. */
export interface SeenPicture {
  /** Rows and columns of units, row by row the tokens of the language model. */
  readonly units: Sides;
  /** Numbers of each patch [N, 1176], window by window. */
  readonly patches: Tensor;
  /** Row and column of each patch. */
  readonly positions: readonly Position[];
  /** Patches of each window, 64 for each; 0 for those that a window at a border lacks. */
  readonly windows: readonly number[];
  /** Number of patches of each window. */
  readonly windowSizes: readonly number[];
  /** Where each patch stands in `windows`. */
  readonly places: readonly number[];
  /** Where each unit, row by row, stands window by window. */
  readonly order: readonly number[];
}

/** Prepares one picture [1, H, W, 3] in 0…1. Fails with tensor.bad-shape for several. */
export function seenPicture(picture: Tensor): SeenPicture {
  if (picture.shape.length !== 4 || picture.shape[0] !== 1 || picture.shape[3] !== COLOURS) {
    const message = `Qwen prompt: expected one picture [1, H, W, 3], received ${describe(picture)}.`;
    throw new LatentkitError("tensor.bad-shape", message);
  }
  const [height, width] = seenSides([picture.shape[1]!, picture.shape[2]!]);
  const image = resizeImage(picture, { method: "bilinear", height, width });
  const units = [height / (UNIT * PATCH), width / (UNIT * PATCH)] as const;
  const sorted = unitsByWindow(units);
  const positions = sorted
    .flat()
    .flatMap(([row, column]): Position[] =>
      Array.from({ length: UNIT * UNIT }, (_, at) => [UNIT * row + Math.floor(at / UNIT), UNIT * column + (at % UNIT)]),
    );
  const windowSizes = sorted.map((own) => own.length * UNIT * UNIT);
  const places = windowSizes.flatMap((size, window) =>
    Array.from({ length: size }, (_, i) => window * WINDOW_PATCHES + i),
  );
  const windows = new Array<number>(windowSizes.length * WINDOW_PATCHES).fill(0);
  for (const [patch, place] of places.entries()) windows[place] = patch;
  const order = new Array<number>(units[0] * units[1]);
  for (const [at, [row, column]] of sorted.flat().entries()) order[row * units[1] + column] = at;
  return { units, patches: patchesOf(image, positions), positions, windows, windowSizes, places, order };
}

/** Sides of whole units next to a picture's own, within the bounds. */
function seenSides([height, width]: Sides): Sides {
  const unit = UNIT * PATCH;
  const sides = (round: (units: number) => number, factor: number): Sides => [
    round((height * factor) / unit) * unit,
    round((width * factor) / unit) * unit,
  ];
  const own = sides(roundHalfEven, 1);
  const pixels = own[0] * own[1];
  const floor = (count: number): number => Math.max(1, Math.floor(count));
  if (pixels > MOST_PIXELS) return sides(floor, Math.sqrt(MOST_PIXELS / (height * width)));
  if (pixels < FEWEST_PIXELS) return sides(Math.ceil, Math.sqrt(FEWEST_PIXELS / (height * width)));
  return own;
}

/** Units of each window, windows and units row by row. */
function unitsByWindow([rows, columns]: Sides): Sides[][] {
  const windows: Sides[][] = [];
  for (let top = 0; top < rows; top += WINDOW)
    for (let left = 0; left < columns; left += WINDOW) {
      const [height, width] = [Math.min(WINDOW, rows - top), Math.min(WINDOW, columns - left)];
      windows.push(
        Array.from({ length: height * width }, (_, i) => [top + Math.floor(i / width), left + (i % width)] as const),
      );
    }
  return windows;
}

/** Patches of an image [1, H, W, 3] at these places, by colour, frame, row and column. */
function patchesOf(image: Tensor, positions: readonly Position[]): Tensor {
  const width = image.shape[2]!;
  const out = Tensor.unfilled([positions.length, PATCH_NUMBERS]);
  let at = 0;
  for (const [row, column] of positions as readonly (readonly [number, number])[])
    for (let colour = 0; colour < COLOURS; colour++)
      for (let frame = 0; frame < FRAMES; frame++)
        for (let y = 0; y < PATCH; y++)
          for (let x = 0; x < PATCH; x++) {
            const value = image.data[((PATCH * row + y) * width + PATCH * column + x) * COLOURS + colour]!;
            out.data[at++] = Math.fround(value - Math.fround(MEAN[colour]!)) / Math.fround(DEVIATION[colour]!);
          }
  return out;
}
