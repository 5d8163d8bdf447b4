import { inputError } from "../../base/errors.js";
import { firstChannels } from "../../tensor/channels.js";
import { clampToUnit, convolved, gaussianWeights } from "../../tensor/image/filters.js";
import { scale } from "../../tensor/ops.js";
import { cropped, joined } from "../../tensor/parts.js";
import { createGenerator, uniforms } from "../../tensor/random.js";
import { resizeImage } from "../../tensor/resize.js";
import { fourSides } from "../../tensor/shape.js";
import { Tensor } from "../../tensor/tensor.js";

/** Side of the pictures that encoders take. */
const SIDE = 224;
const COLOURS = 3;

const METHODS = {
  LANCZOS: "lanczos",
  BICUBIC: "pillow-bicubic",
  HAMMING: "pillow-hamming",
  BILINEAR: "pillow-bilinear",
  BOX: "pillow-box",
  NEAREST: "pillow-nearest",
} as const;

export const INTERPOLATIONS = Object.keys(METHODS) as Interpolation[];
export const CROP_POSITIONS = ["top", "bottom", "left", "right", "center", "pad"] as const;

type Interpolation = keyof typeof METHODS;
type CropPosition = (typeof CROP_POSITIONS)[number];

/** Pictures [B, H, W, C] as squares [B, 224, 224, 3] in 256 levels: a part of them, or all with black margins. */
export function preparedPicture(
  image: Tensor,
  interpolation: Interpolation,
  position: CropPosition,
  sharpening: number,
): Tensor {
  const [, height, width] = fourSides("PrepImageForClipVision", image, "[B, H, W, C]");
  if (height === 0 || width === 0)
    throw inputError("value.invalid", { input: "image" }, "a picture of at least 1 x 1 pixels", image);
  const square = squared(firstChannels(image, COLOURS), position);
  const sized = resizeImage(square, { method: METHODS[interpolation], height: SIDE, width: SIDE });
  return sharpening > 0 ? contrastSharpened(sized, sharpening) : sized;
}

function squared(image: Tensor, position: CropPosition): Tensor {
  const [batch, height, width] = image.shape as [number, number, number];
  if (height === width) return image;
  if (position === "pad") {
    const side = Math.max(height, width);
    const black = (rows: number, columns: number): Tensor => Tensor.zeros([batch, rows, columns, COLOURS]);
    const missing = side - Math.min(height, width);
    const [before, after] = [Math.floor(missing / 2), Math.ceil(missing / 2)];
    if (height < width) return joined([black(before, width), image, black(after, width)], 1);
    return joined([black(height, before), image, black(height, after)], 2);
  }
  const side = Math.min(height, width);
  const [top, left] = [(height - side) / 2, (width - side) / 2].map(Math.floor) as [number, number];
  const at = {
    top: position === "top" ? 0 : position === "bottom" ? height - side : top,
    left: position === "left" ? 0 : position === "right" ? width - side : left,
  };
  return cropped(image, 1, { ...at, height: side, width: side });
}

/**
 * Pictures [B, H, W, C] sharpened by what contrast leaves room for; the outside counts as black. Source: AMD, "Contrast
 * Adaptive Sharpening".
 */
function contrastSharpened(image: Tensor, amount: number): Tensor {
  const [, height, width, channels] = image.shape as [number, number, number, number];
  const out = Tensor.unfilled(image.shape);
  const [from, to] = [image.data, out.data];
  const most = amount * (1 / 5 - 1 / 8) + 1 / 8;
  for (let i = 0; i < to.length; i++) {
    const [pixel, channel] = [Math.floor(i / channels), i % channels];
    const [item, y, x] = [Math.floor(pixel / (height * width)), Math.floor(pixel / width) % height, pixel % width];
    const at = (dy: number, dx: number): number => {
      const [row, column] = [y + dy, x + dx];
      const isInside = row >= 0 && row < height && column >= 0 && column < width;
      return isInside ? from[((item * height + row) * width + column) * channels + channel]! : 0;
    };
    const [north, south, west, east, centre] = [at(-1, 0), at(1, 0), at(0, -1), at(0, 1), at(0, 0)];
    const cross = [north, south, west, east, centre];
    const corners = [at(-1, -1), at(-1, 1), at(1, -1), at(1, 1)];
    const least = Math.max(0, Math.min(...cross) + Math.min(...corners));
    const greatest = Math.min(1, Math.max(...cross)) + Math.min(1, Math.max(...corners));
    const gain = -Math.sqrt(Math.min(least, 2 - greatest) / greatest) * most;
    const value = ((north + south + west + east) * gain + centre) / (1 + 4 * gain);
    to[i] = value > 0 ? Math.min(1, value) : 0;
  }
  return out;
}

export const NOISES = ["fade", "dissolve", "gaussian"] as const;

/** Noise of a picture [1, 224, 224, 3] in 0…1, which stands for none on the negative side. */
export function noisePicture(type: (typeof NOISES)[number], strength: number, blur: number): Tensor {
  const shape = [1, SIDE, SIDE, COLOURS];
  const noise = clampToUnit(noiseOf(type, strength, shape));
  if (blur === 0) return noise;
  const count = blur % 2 === 0 ? blur + 1 : blur;
  const sigma = 0.3 * ((count - 1) / 2 - 1) + 0.8;
  return convolved(noise, gaussianWeights(count, sigma, (count - 1) / 2));
}

function noiseOf(type: (typeof NOISES)[number], strength: number, shape: readonly number[]): Tensor {
  if (type === "gaussian") return scale(createGenerator({ seed: 0 }).randn(shape), strength);
  if (type === "fade") return scale(uniforms(shape, 0), strength);
  const both = uniforms([2, ...shape], 0);
  const out = Tensor.zeros(shape);
  for (let i = 0; i < out.size; i++) if (both.data[i]! < strength) out.data[i] = both.data[out.size + i]!;
  return out;
}

/** Side of a tile, and of the square that pictures of nearly that form are cut to. */
const TILE = 256;
const SQUARE = 512;
const MOST_TILES = 4;
/** Long side of a picture over its short one: most of a longer one would lie between the tiles. */
const MOST_RATIO = 16;

/** Tiles of a picture, [tiles, 256, 256, 3], and where each lies in it, [tiles, H, W]. */
export interface PictureTiles {
  readonly tiles: Tensor;
  readonly masks: Tensor;
}

/** The tiles of one picture [1, H, W, C], which together cover it, or at least its middle square. */
export function tiled(image: Tensor): PictureTiles {
  const [, height, width] = fourSides("IPAdapterTiled", image, "[B, H, W, C]");
  if (Math.max(height, width) > MOST_RATIO * Math.min(height, width)) {
    const expected = `a picture at most ${MOST_RATIO} times as long as it is wide`;
    throw inputError("value.invalid", { input: "image" }, expected, image);
  }
  const colours = firstChannels(image, COLOURS);
  const isSquare = height / width > 0.75 && height / width < 1.33;
  const side = Math.min(height, width);
  const picture = isSquare
    ? resizeImage(squared(colours, "center"), { method: "lanczos", height: SQUARE, width: SQUARE })
    : resizeImage(colours, {
        method: "lanczos",
        height: Math.trunc((height * TILE) / side),
        width: Math.trunc((width * TILE) / side),
      });
  const [, rows, columns] = picture.shape as [number, number, number];
  const boxes = startsOf(rows).flatMap((top) =>
    startsOf(columns).map((left) => ({ top, left, height: TILE, width: TILE })),
  );
  const masks = Tensor.zeros([boxes.length, rows, columns]);
  for (const [index, { top, left }] of boxes.entries())
    for (let row = top; row < top + TILE; row++) {
      const start = (index * rows + row) * columns + left;
      masks.data.fill(1, start, start + TILE);
    }
  return {
    tiles: joined(
      boxes.map((box) => cropped(picture, 1, box)),
      0,
    ),
    masks,
  };
}

/** Where tiles begin along a side: evenly spread, with the least overlap. */
function startsOf(length: number): number[] {
  const count = Math.min(MOST_TILES, Math.ceil(length / TILE));
  if (count === 1) return [0];
  const overlap = Math.max(0, (TILE * count - length) / (count - 1));
  return Array.from({ length: count }, (_, k) => Math.trunc(k * (TILE - overlap)));
}
