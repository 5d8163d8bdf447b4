import { describe, LatentkitError } from "../../../base/errors.js";
import { roundHalfEven } from "../../../tensor/rounding.js";
import type { Tensor } from "../../../tensor/tensor.js";

/** A rectangle of a latent, in its cells. */
export interface Area {
  readonly height: number;
  readonly width: number;
  readonly y: number;
  readonly x: number;
}

/** Cells from an inner border over which the weight of an area rises to 1, at most. */
const FEATHER = 8;
/** Side of the area around a mask, at least. */
const LEAST_BOUND = 8;

/**
 * Reads the option `area` of a conditioning, for a latent of these sides: [height, width, y, x] in cells, or behind
 * "percentage" as fractions of the sides.
 */
export function readArea(value: unknown, rows: number, columns: number): Area | undefined {
  if (value === undefined || value === null) return undefined;
  const list: readonly unknown[] = Array.isArray(value) ? value : [];
  const isFraction = list[0] === "percentage";
  const numbers = isFraction ? list.slice(1) : list;
  if (numbers.length !== 4 || !numbers.every((side): side is number => isSide(side, isFraction))) {
    const expected = '[height, width, y, x] in cells of the latent, or with fractions behind "percentage"';
    throw new LatentkitError("value.invalid", `conditioning, area: expected ${expected}, received ${describe(value)}.`);
  }
  const [height, width, y, x] = numbers as [number, number, number, number];
  if (!isFraction) return { height, width, y, x };
  return {
    height: Math.max(1, roundHalfEven(height * rows)),
    width: Math.max(1, roundHalfEven(width * columns)),
    y: roundHalfEven(y * rows),
    x: roundHalfEven(x * columns),
  };
}

const isSide = (value: unknown, isFraction: boolean): boolean =>
  typeof value === "number" && value >= 0 && (isFraction ? value <= 2 ** 20 : Number.isSafeInteger(value));

/** The part of an area that lies in a latent. Fails where none does. */
export function clipped(area: Area | undefined, rows: number, columns: number): Area {
  if (area === undefined) return { height: rows, width: columns, y: 0, x: 0 };
  const height = Math.min(rows - area.y, area.height);
  const width = Math.min(columns - area.x, area.width);
  if (height > 0 && width > 0) return { ...area, height, width };
  const expected = `at least one cell within the latent of ${rows} x ${columns}`;
  const received = `${area.height} x ${area.width} from y ${area.y}, x ${area.x} on`;
  throw new LatentkitError("value.out-of-range", `conditioning, area: expected ${expected}, received ${received}.`);
}

export const sameArea = (a: Area, b: Area): boolean =>
  a.height === b.height && a.width === b.width && a.y === b.y && a.x === b.x;

/** Whether an area lies within another one. */
export const isInside = (a: Area, outer: Area): boolean =>
  a.y >= outer.y &&
  a.x >= outer.x &&
  a.y + a.height <= outer.y + outer.height &&
  a.x + a.width <= outer.x + outer.width;

/** The area around all that is not 0 in masks [n, H, W], at least 8 x 8 cells. */
export function boundsOf(mask: Tensor): Area {
  const [, rows, columns] = mask.shape as [number, number, number];
  let [top, left, bottom, right] = [rows, columns, -1, -1];
  for (const [i, value] of mask.data.entries()) {
    if (value === 0) continue;
    const [y, x] = [Math.floor(i / columns) % rows, i % columns];
    [top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
    [left, right] = [Math.min(left, x), Math.max(right, x)];
  }
  if (bottom < 0) return { height: LEAST_BOUND, width: LEAST_BOUND, y: 0, x: 0 };
  const side = (from: number, to: number): number => Math.max(LEAST_BOUND, to - from + 1);
  return { height: side(top, bottom), width: side(left, right), y: top, x: left };
}

/** Weights of the cells of an area, row by row: they rise from its borders inside the latent. */
export function feathered({ height, width, y, x }: Area, rows: number, columns: number): Float64Array {
  const down = ramp(height, y > 0, y + height < rows);
  const across = ramp(width, x > 0, x + width < columns);
  return Float64Array.from({ length: height * width }, (_, i) => down[Math.floor(i / width)]! * across[i % width]!);
}

function ramp(length: number, fromStart: boolean, fromEnd: boolean): number[] {
  const radius = Math.min(FEATHER, Math.floor(length / 4));
  const rise = (distance: number): number => (distance < radius ? (distance + 1) / radius : 1);
  return Array.from({ length }, (_, i) => (fromStart ? rise(i) : 1) * (fromEnd ? rise(length - 1 - i) : 1));
}
