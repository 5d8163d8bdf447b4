import { inputError } from "../base/errors.js";
import { firstChannels } from "../tensor/channels.js";
import { cropped } from "../tensor/parts.js";
import type { Tensor } from "../tensor/tensor.js";
import type { InputSpec } from "./inputs.js";

/** Side of a latent cell in pixels. */
export const CELL = 8;

/** An INT input in pixels, of which the node takes whole cells. */
export const inCells = <Spec extends InputSpec<number>>(spec: Spec, cell: number = CELL): Spec => ({
  ...spec,
  used: (pixels: number) => pixels - (pixels % cell),
});

/** Cuts an axis and the one after it down to whole cells, as much on either side. */
export function wholeCells(x: Tensor, axis: number): Tensor {
  const [height = 0, width = 0] = [x.shape.at(axis), x.shape.at(axis + 1)];
  const margin = (side: number): number => Math.floor((side % CELL) / 2);
  const whole = (side: number): number => side - (side % CELL);
  return cropped(x, axis, {
    ...{ top: margin(height), left: margin(width) },
    ...{ height: whole(height), width: whole(width) },
  });
}

/** Reports an image of which a vae takes whole cells alone. */
export function warnOfCut(image: Tensor, input: string, log: (message: string) => void): void {
  const [, height = 0, width = 0] = image.shape;
  const whole = (side: number): number => side - (side % CELL);
  if (whole(height) === height && whole(width) === width) return;
  const sizes = `${width} x ${height} pixels become ${whole(width)} x ${whole(height)}`;
  log(`input "${input}": ${sizes}: a vae takes multiples of ${CELL}.`);
}

/** The colours of an image [B, H, W, C] for a vae; throws for one that has fewer than three, or no whole cell. */
export function coloursOf(image: Tensor, input: string): Tensor {
  const [, height = 0, width = 0, channels = 0] = image.shape;
  if (channels >= 3 && height >= CELL && width >= CELL) return firstChannels(image, 3);
  throw inputError(
    "input.invalid",
    { input },
    `an image of 3 or 4 channels and at least ${CELL} x ${CELL} pixels`,
    image,
  );
}
