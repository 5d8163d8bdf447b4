import { cropped } from "../../../tensor/parts.js";
import { Tensor } from "../../../tensor/tensor.js";
import { CELL, coloursOf, warnOfCut, wholeCells } from "../../cells.js";
import { defineNode } from "../../define.js";
import { image, vae } from "../../inputs.js";
import { addTile, regionOf } from "../../tiles.js";
import { cellTiles, requireTile, tileInputs } from "./vae-tiles.js";

export const vaeEncodeTiled = defineNode({
  key: "VAEEncodeTiled",
  displayName: "VAE Encode (Tiled)",
  category: "_for_testing",
  description: "Encodes images in overlapping tiles, which need less memory; sizes are in pixels.",
  inputs: { pixels: image(), vae: vae(), ...tileInputs(64) },
  outputs: { LATENT: "LATENT" },
  run: async ({ pixels, vae, ...sizes }, { signal, progress, log }) => {
    const whole = wholeCells(coloursOf(pixels, "pixels"), 1);
    warnOfCut(pixels, "pixels", log);
    const [batch = 0, height = 0, width = 0] = whole.shape;
    const [rows, columns] = [height / CELL, width / CELL];
    const tiles = cellTiles([rows, columns], sizes, 1, log);
    if (tiles.length === 1) return { LATENT: { samples: await vae.encode(whole, log) } };
    let samples: Tensor | undefined;
    for (const [index, tile] of tiles.entries()) {
      signal.throwIfAborted();
      const { down, across } = tile;
      const encoded = await vae.encode(cropped(whole, 1, regionOf(tile, CELL)), log);
      const channels = samples?.shape[1] ?? encoded.shape[1] ?? 0;
      requireTile(encoded, [batch, channels, down.count, across.count]);
      samples ??= Tensor.zeros([batch, channels, rows, columns]);
      const layout = { planes: batch * channels, height: rows, width: columns, values: 1, scale: 1 };
      addTile(samples.data, encoded.data, tile, layout);
      progress(index + 1, tiles.length);
    }
    return { LATENT: { samples: samples! } };
  },
});
