import { cropped } from "../../../tensor/parts.js";
import { fourSides } from "../../../tensor/shape.js";
import { Tensor } from "../../../tensor/tensor.js";
import { CELL } from "../../cells.js";
import { defineNode } from "../../define.js";
import { latent, vae } from "../../inputs.js";
import { addTile, regionOf } from "../../tiles.js";
import { cellTiles, requireTile, tileInputs } from "./vae-tiles.js";

export const vaeDecodeTiled = defineNode({
  key: "VAEDecodeTiled",
  displayName: "VAE Decode (Tiled)",
  category: "_for_testing",
  description: "Decodes latents in overlapping tiles, which need less memory; sizes are in pixels.",
  inputs: { samples: latent(), vae: vae(), ...tileInputs(32) },
  outputs: { IMAGE: "IMAGE" },
  run: async ({ samples: { samples }, vae, ...sizes }, { signal, progress, log }) => {
    const [batch, , rows, columns] = fourSides("VAE decode", samples);
    const tiles = cellTiles([rows, columns], sizes, CELL, log);
    if (tiles.length === 1) return { IMAGE: await vae.decode(samples) };
    const [height, width] = [rows * CELL, columns * CELL];
    const image = Tensor.zeros([batch, height, width, 3]);
    for (const [index, tile] of tiles.entries()) {
      signal.throwIfAborted();
      const { down, across } = tile;
      const part = cropped(samples, -2, regionOf(tile));
      const decoded = requireTile(await vae.decode(part), [batch, down.count * CELL, across.count * CELL, 3]);
      addTile(image.data, decoded.data, tile, { planes: batch, height, width, values: 3, scale: CELL });
      progress(index + 1, tiles.length);
    }
    return { IMAGE: image };
  },
});
