import { LatentkitError } from "../base/errors.js";
import { produce } from "./device/compute.js";
import { fourSides, maskSides } from "./shape.js";
import type { Tensor } from "./tensor.js";

/**
 * A copy of destination [B, C, H, W] with source * mask added to the area of source, [B, C, h, w], from row y and column
 * x on. The mask, [1 or B, h, w], is shared by the channels. Product and sum are rounded to float32. `out` may be the
 * destination.
 */
export function addMasked(
  destination: Tensor,
  source: Tensor,
  mask: Tensor,
  y: number,
  x: number,
  out?: Tensor,
): Tensor {
  const shape = fourSides("addMasked destination", destination);
  const [batch, channels, height, width] = fourSides("addMasked source", source);
  if (batch !== shape[0] || channels !== shape[1]) {
    const message = `addMasked: expected a source [${shape[0]}, ${shape[1]}, h, w], received [${source.shape.join(", ")}].`;
    throw new LatentkitError("tensor.bad-shape", message);
  }
  requireInside("addMasked", shape, y, x, height, width);
  const [maskBatch, maskHeight, maskWidth] = maskSides("addMasked", mask);
  if ((maskBatch !== 1 && maskBatch !== batch) || maskHeight !== height || maskWidth !== width) {
    const message = `addMasked: expected a mask [1 or ${batch}, ${height}, ${width}], received [${mask.shape.join(", ")}].`;
    throw new LatentkitError("tensor.bad-shape", message);
  }
  return produce(
    "addMasked",
    destination,
    destination.size,
    out,
    (at, to, result) => {
      at.copy(result, destination, 0);
      at.ops.addMasked(to, shape, at.in(source), [y, x, height, width], at.in(mask), maskBatch);
    },
    destination,
    source,
    mask,
  );
}

function requireInside(
  operation: string,
  [, , height, width]: readonly [number, number, number, number],
  y: number,
  x: number,
  h: number,
  w: number,
): void {
  if (Number.isInteger(y) && Number.isInteger(x) && y >= 0 && x >= 0 && y + h <= height && x + w <= width) return;
  const message = `${operation}: expected an area within ${height} rows and ${width} columns, received ${h} x ${w} at row ${y}, column ${x}.`;
  throw new LatentkitError("tensor.bad-shape", message);
}
