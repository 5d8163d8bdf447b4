import { describe, LatentkitError } from "../../base/errors.js";
import { resizeBilinear } from "../../tensor/ops.js";
import { narrowed } from "../../tensor/parts.js";
import { Tensor } from "../../tensor/tensor.js";

/** The noise mask of a latent as [n, H, W] of the latent's sides, with at most as many masks as latents; fewer repeat. */
export function denoiseMask(mask: unknown, shape: readonly number[]): Tensor | undefined {
  if (mask === undefined || mask === null) return undefined;
  const [batch, , height, width] = shape as [number, number, number, number];
  const [rows, columns] = mask instanceof Tensor ? mask.shape.slice(-2) : [];
  if (!(mask instanceof Tensor) || rows === undefined || columns === undefined || mask.size === 0) {
    const expected = "a mask [B, H, W] or [H, W] with elements";
    throw new LatentkitError("tensor.bad-shape", `noise_mask: expected ${expected}, received ${describe(mask)}.`);
  }
  const count = mask.size / (rows * columns);
  const planes = mask.reshape([count, rows, columns]);
  const used = count > batch ? narrowed(planes, 0, 0, batch) : planes;
  return rows === height && columns === width ? used : resizeBilinear(used, height, width);
}
