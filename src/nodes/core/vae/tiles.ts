import { inputError } from "../../../base/errors.js";
import type { Tensor } from "../../../tensor/tensor.js";
import { CELL } from "../../cells.js";
import { int } from "../../inputs.js";

/** Inputs of both tiled nodes; the temporal ones belong to vaes of video and change nothing here. */
export const tileInputs = (step: number) => ({
  tile_size: int({ default: 512, min: 64, max: 4096, step }),
  overlap: int({ default: 64, min: 0, max: 4096, step: 32 }),
  temporal_size: int({ default: 64, min: 8, max: 4096, step: 4, tooltip: "Frames of a tile; for vaes of video." }),
  temporal_overlap: int({ default: 8, min: 4, max: 4096, step: 4, tooltip: "Frames that tiles share." }),
});

/** A tile along one axis, with the weight of each of its values; the weights of all tiles add up to 1 everywhere. */
interface Span {
  readonly from: number;
  readonly count: number;
  readonly weights: Float32Array;
}

export interface Tile {
  readonly down: Span;
  readonly across: Span;
}

/**
 * Tiles of a latent of rows x columns cells; sizes in pixels. They have one size and share `overlap`, the last ones more,
 * where their weights rise and fall linearly; an overlap is a quarter of the tile at most. `scale` is the number of weights
 * for a cell.
 */
export function tilesOf(rows: number, columns: number, pixels: { tile_size: number; overlap: number }, scale: number) {
  const size = Math.floor(pixels.tile_size / CELL);
  const overlap = Math.floor(Math.min(pixels.overlap, Math.floor(pixels.tile_size / 4)) / CELL);
  const across = spans(columns, size, overlap, scale);
  return spans(rows, size, overlap, scale).flatMap((down): Tile[] => across.map((span) => ({ down, across: span })));
}

function spans(length: number, size: number, overlap: number, scale: number): Span[] {
  const count = Math.min(size, length);
  const steps = Math.max(0, Math.ceil((length - size) / (size - overlap)));
  const starts = Array.from({ length: steps + 1 }, (_, at) => Math.min(at * (size - overlap), length - count));
  const feather = Math.max(1, overlap * scale);
  const rise = (at: number) => Math.min(1, (at + 1) / feather, (count * scale - at) / feather);
  const sums = new Float64Array(length * scale);
  for (const from of starts) for (let at = 0; at < count * scale; at++) sums[from * scale + at]! += rise(at);
  return starts.map((from) => {
    const weights = Float32Array.from({ length: count * scale }, (_, at) => rise(at) / sums[from * scale + at]!);
    return { from, count, weights };
  });
}

/** Adds a tile times its weights to a picture; both are [planes, height, width, values] in `layout`. */
export function addTile(
  into: Float32Array,
  tile: Float32Array,
  { down, across }: Tile,
  layout: { planes: number; height: number; width: number; values: number; scale: number },
): void {
  const { planes, height, width, values, scale } = layout;
  const [rows, columns] = [down.weights.length, across.weights.length];
  for (let plane = 0, from = 0; plane < planes; plane++)
    for (let row = 0; row < rows; row++) {
      const line = (plane * height + down.from * scale + row) * width + across.from * scale;
      const [share, shares] = [down.weights[row]!, across.weights];
      for (let column = 0, to = line * values; column < columns; column++) {
        const weight = share * shares[column]!;
        for (let value = 0; value < values; value++, to++, from++) into[to] = into[to]! + tile[from]! * weight;
      }
    }
}

/** Throws where a vae returned another shape for a tile than it must. */
export function requireTile(tile: Tensor, shape: readonly number[]): Tensor {
  if (tile.hasShape(shape)) return tile;
  throw inputError("value.invalid", { input: "vae" }, `a vae that returns [${shape.join(", ")}] for a tile`, tile);
}
