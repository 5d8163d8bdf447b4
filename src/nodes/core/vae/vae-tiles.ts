import { inputError } from "../../../base/errors.js";
import type { Tensor } from "../../../tensor/tensor.js";
import { CELL, inCells } from "../../cells.js";
import { int } from "../../inputs.js";
import { type Tile, tilesOf } from "../../tiles.js";

/** Inputs of both tiled nodes; the temporal ones belong to vaes of video and change nothing here. */
export const tileInputs = (step: number) => ({
  tile_size: inCells(int({ default: 512, min: 64, max: 4096, step })),
  overlap: inCells(int({ default: 64, min: 0, max: 4096, step: 32 })),
  temporal_size: int({ default: 64, min: 8, max: 4096, step: 4, tooltip: "Not used: no VAE here decodes video." }),
  temporal_overlap: int({ default: 8, min: 4, max: 4096, step: 4, tooltip: "Not used: no VAE here decodes video." }),
});

/** Tiles of a latent of rows x columns cells; sizes in pixels, an overlap is a quarter of the tile at most. */
export function cellTiles(
  [rows, columns]: readonly [number, number],
  { tile_size, overlap }: { tile_size: number; overlap: number },
  scale: number,
  log: (message: string) => void,
): Tile[] {
  const shared = Math.min(overlap, Math.floor(tile_size / 4));
  if (shared !== overlap) log(`input "overlap": ${overlap} becomes ${shared}, a quarter of tile_size.`);
  return tilesOf(rows, columns, Math.floor(tile_size / CELL), Math.floor(shared / CELL), scale);
}

/** Throws where a vae returned another shape for a tile than it must. */
export function requireTile(tile: Tensor, shape: readonly number[]): Tensor {
  if (tile.hasShape(shape)) return tile;
  throw inputError("value.invalid", { input: "vae" }, `a vae that returns [${shape.join(", ")}] for a tile`, tile);
}
