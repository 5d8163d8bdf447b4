import { inputError } from "../../../base/errors.js";
import { composite } from "../../../tensor/ops.js";
import { cropped } from "../../../tensor/parts.js";
import { Tensor } from "../../../tensor/tensor.js";
import { inCells } from "../../cells.js";
import { defineNode } from "../../define.js";
import { int, latent } from "../../inputs.js";
import { planes } from "../../latents.js";

const pixels = () => inCells(int({ default: 0, min: 0, max: 16384, step: 8 }));

export const latentComposite = defineNode({
  key: "LatentComposite",
  displayName: "Latent Composite",
  category: "latent",
  description: "Pastes a latent onto another, feathered at inner edges; offsets are in pixels.",
  inputs: { samples_to: latent(), samples_from: latent(), x: pixels(), y: pixels(), feather: pixels() },
  outputs: { LATENT: "LATENT" },
  run: ({ samples_to, samples_from, ...pixels }) => {
    const [x, y, feather] = [pixels.x, pixels.y, pixels.feather].map((side) => Math.floor(side / 8)) as Offsets;
    const [to, whole] = [planes(samples_to.samples), planes(samples_from.samples)];
    refuseMisfit(to, whole);
    const [, , height = 0, width = 0] = to.shape;
    const [, , rows = 0, columns = 0] = whole.shape;
    const [visibleRows, visibleColumns] = [Math.min(rows, height - y), Math.min(columns, width - x)];
    if (visibleRows <= 0 || visibleColumns <= 0) return { LATENT: { ...samples_to } };
    const from = cropped(whole, -2, { top: 0, left: 0, height: visibleRows, width: visibleColumns });
    const mask = feather === 0 ? undefined : ramps(visibleRows, visibleColumns, [x, y, feather], [height, width]);
    const samples = composite(to, from, x, y, mask).reshape(samples_to.samples.shape);
    return { LATENT: { ...samples_to, samples } };
  },
});

type Offsets = [x: number, y: number, feather: number];

function refuseMisfit(to: Tensor, from: Tensor): void {
  const [batch, channels] = to.shape;
  const [ownBatch, ownChannels] = from.shape;
  if ((ownBatch === batch || ownBatch === 1) && (ownChannels === channels || ownChannels === 1)) return;
  const sides = [batch, channels].map((side) => (side === 1 ? "1" : `${side} or 1`));
  const expected = `a latent of shape [${sides.join(", ")}, H, W]`;
  throw inputError("input.invalid", { input: "samples_from" }, expected, from);
}

/** Mask of ones that rises over `feather` cells from each edge that lies inside the target. */
function ramps(rows: number, columns: number, [x, y, feather]: Offsets, [height, width]: [number, number]): Tensor {
  const mask = Tensor.full([1, rows, columns], 1);
  const scaleRow = (row: number, k: number) => {
    for (let at = row * columns; at < (row + 1) * columns; at++) mask.data[at]! *= k;
  };
  const scaleColumn = (column: number, k: number) => {
    for (let at = column; at < mask.size; at += columns) mask.data[at]! *= k;
  };
  for (let step = 0; step < feather; step++) {
    const k = Math.fround((1 / feather) * (step + 1));
    const [bottom, right] = [fromEnd(rows, step), fromEnd(columns, step)];
    if (y !== 0 && step < rows) scaleRow(step, k);
    if (y + rows < height && bottom !== undefined) scaleRow(bottom, k);
    if (x !== 0 && step < columns) scaleColumn(step, k);
    if (x + columns < width && right !== undefined) scaleColumn(right, k);
  }
  return mask;
}

/** Index of the step-th element from the end; past the beginning it goes on at the end, as in ComfyUI. */
function fromEnd(length: number, step: number): number | undefined {
  if (step < length) return length - 1 - step;
  return step > length && step < 2 * length ? 2 * length - 1 - step : undefined;
}
