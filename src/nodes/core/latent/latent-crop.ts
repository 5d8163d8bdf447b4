import { cropped } from "../../../tensor/parts.js";
import { warnOfClips } from "../../bends.js";
import { CELL, inCells } from "../../cells.js";
import { defineNode } from "../../define.js";
import { int, latent } from "../../inputs.js";

const side = () => inCells(int({ default: 512, min: 64, max: 16384, step: 8 }));
const offset = () => inCells(int({ default: 0, min: 0, max: 16384, step: 8 }));

/** Smallest side of a result, in cells. */
const SMALLEST = 8;

export const latentCrop = defineNode({
  key: "LatentCrop",
  displayName: "Crop Latent",
  category: "latent/transform",
  description: "A part of a latent, at least 64 pixels wide and high where the latent is; sizes are in pixels.",
  inputs: { samples: latent(), width: side(), height: side(), x: offset(), y: offset() },
  outputs: { LATENT: "LATENT" },
  run: ({ samples: latent, width, height, x, y }, { log }) => {
    const { samples } = latent;
    const [rows = 0, columns = 0] = samples.shape.slice(-2);
    const [[top, high], [left, wide]] = [span(rows, y, height), span(columns, x, width)];
    const clips = { width: clip(width, wide), height: clip(height, high), x: clip(x, left), y: clip(y, top) };
    warnOfClips("latent", clips, log);
    return { LATENT: { ...latent, samples: cropped(samples, -2, { top, left, height: high, width: wide }) } };
  },
});

/** Pixels as received and as used; those of a part of a cell are a bend of the input. */
const clip = (pixels: number, cells: number): readonly [number, number] => [pixels - (pixels % CELL), cells * CELL];

/** First cell and number of cells; in a latent below the smallest side the start counts from its end, as in ComfyUI. */
function span(length: number, offset: number, pixels: number): [from: number, count: number] {
  const start = Math.min(Math.floor(offset / 8), length - SMALLEST);
  const end = Math.min(length, start + Math.floor(pixels / 8));
  const from = start < 0 ? Math.max(0, length + start) : start;
  return [from, Math.max(0, end - from)];
}
