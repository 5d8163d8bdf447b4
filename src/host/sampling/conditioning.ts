import { describe, LatentkitError } from "../../base/errors.js";
import { roundHalfEven } from "../../tensor/rounding.js";
import type { ModelSampling } from "../../tensor/sampling/model-sampling.js";
import { borderAt } from "../../tensor/sampling/noise-level.js";
import type { Tensor } from "../../tensor/tensor.js";
import type { Conditioning } from "../types.js";
import { sizedMask } from "./latent-space.js";

/** One entry of a conditioning, its options read for a latent of certain sides. */
export interface Entry {
  /** The entry as the model receives it. */
  readonly conditioning: Conditioning[number];
  readonly area?: Area;
  readonly strength: number;
  /** [n, H, W] of the latent's sides. */
  readonly mask?: Tensor;
  readonly maskStrength: number;
  /** Highest and lowest noise level at which the entry counts. */
  readonly from: number;
  readonly to: number;
}

/**
 * Reads the sides of guidance for a latent of these sides, and lets them give each other their areas in this order. An
 * entry of several sides is another object in each, so that a model can tell them apart. Fails with value.invalid.
 */
export function readSides(
  sides: readonly Conditioning[],
  sampling: ModelSampling,
  latentSides: readonly [number, number],
  order: readonly number[],
): Entry[][] {
  const taken = new Set<Conditioning[number]>();
  const entries = sides.map((side) => {
    const own = side.map((entry): Conditioning[number] => (taken.has(entry) ? [...entry] : entry));
    for (const entry of own) taken.add(entry);
    return readEntries(own, sampling, latentSides);
  });
  shareAreas(entries, order);
  return entries;
}

/** Reads the options of all entries of a conditioning, for a latent of these sides. Fails with value.invalid. */
export function readEntries(
  conditioning: Conditioning,
  sampling: ModelSampling,
  [rows, columns]: readonly [number, number],
): Entry[] {
  return conditioning.map((entry) => {
    const [, options] = entry;
    const mask = sizedMask("conditioning, mask", options.mask, [rows, columns]);
    const isBound = mask !== undefined && options.set_area_to_bounds === true;
    const area = isBound ? boundsOf(mask) : readArea(options.area, rows, columns);
    clipped(area, rows, columns);
    const start = readNumber(options, "start_percent", Number.NaN);
    const end = readNumber(options, "end_percent", Number.NaN);
    return {
      conditioning: entry,
      area,
      strength: readNumber(options, "strength", 1),
      mask,
      maskStrength: readNumber(options, "mask_strength", 1),
      from: Number.isNaN(start) ? Number.POSITIVE_INFINITY : borderAt(sampling, start),
      to: Number.isNaN(end) ? Number.NEGATIVE_INFINITY : borderAt(sampling, end),
    };
  });
}

/**
 * Gives the sides in this order each other's areas: for an entry with an area, every other side gets one with its area,
 * strength, mask and range, for the conditioning of its smallest entry around that area.
 */
function shareAreas(sides: readonly Entry[][], order: readonly number[]): void {
  for (const side of order) {
    for (const entry of sides[side]!) {
      const others = order.filter((other) => other !== side);
      if (entry.area !== undefined) for (const other of others) addArea(sides[other]!, entry, entry.area);
    }
  }
}

function addArea(entries: Entry[], from: Entry, area: Area): void {
  let smallest: Entry | undefined;
  for (const entry of entries) {
    if (entry.area !== undefined && !isInside(area, entry.area)) continue;
    if (smallest === undefined || (entry.area !== undefined && isSmaller(entry.area, smallest.area))) smallest = entry;
  }
  if (smallest === undefined || (smallest.area !== undefined && sameArea(smallest.area, area))) return;
  const [tensor, options] = smallest.conditioning;
  entries.push({ ...from, conditioning: [tensor, { ...options, ...weightOptions(from.conditioning[1]) }] });
}

/** Options that say where, when and how much an entry counts; those that it lacks are undefined. */
const weightOptions = (options: Conditioning[number][1]): Record<string, unknown> => ({
  area: options.area,
  mask: options.mask,
  set_area_to_bounds: options.set_area_to_bounds,
  strength: options.strength,
  mask_strength: options.mask_strength,
  start_percent: options.start_percent,
  end_percent: options.end_percent,
});

const isSmaller = (a: Area, b: Area | undefined): boolean => b === undefined || a.height * a.width < b.height * b.width;

function readNumber(options: Record<string, unknown>, name: string, absent: number): number {
  const value = options[name];
  if (value === undefined || value === null) return absent;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw new LatentkitError("value.invalid", `conditioning, ${name}: expected a number, received ${describe(value)}.`);
}

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
 *
 * @internal
 */
export function readArea(value: unknown, rows: number, columns: number): Area | undefined {
  if (value === undefined || value === null) return undefined;
  const list: readonly unknown[] = Array.isArray(value) ? value : [];
  const isFraction = list[0] === "percentage";
  const numbers = isFraction ? list.slice(1) : list;
  if (numbers.length !== 4 || !numbers.every((side): side is number => isSide(side, isFraction))) {
    const expected = '[height, width, y, x] in latent cells, or ["percentage", height, width, y, x] as fractions';
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

/** The part of an area that lies in a latent. Fails if none does. */
export function clipped(area: Area | undefined, rows: number, columns: number): Area {
  if (area === undefined) return { height: rows, width: columns, y: 0, x: 0 };
  const height = Math.min(rows - area.y, area.height);
  const width = Math.min(columns - area.x, area.width);
  if (height > 0 && width > 0) return { ...area, height, width };
  const expected = `an area that overlaps the latent of ${rows} x ${columns} cells`;
  const received = `${area.height} x ${area.width} cells at y ${area.y}, x ${area.x}`;
  throw new LatentkitError("value.out-of-range", `conditioning, area: expected ${expected}, received ${received}.`);
}

export const sameArea = (a: Area, b: Area): boolean =>
  a.height === b.height && a.width === b.width && a.y === b.y && a.x === b.x;

/** Whether an area lies within another one. */
const isInside = (a: Area, outer: Area): boolean =>
  a.y >= outer.y &&
  a.x >= outer.x &&
  a.y + a.height <= outer.y + outer.height &&
  a.x + a.width <= outer.x + outer.width;

/** The area around all that is not 0 in masks [n, H, W], at least 8 x 8 cells. @internal */
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

/**
 * Another side with what the positive side shares: the controls of ControlNetApply, and boxes of GLIGEN. Entries without an
 * area get them in turn, the last one counts; a side that has its own for the whole picture stays as it is.
 */
export function withSharedOptions(positive: Conditioning, other: Conditioning): Conditioning {
  const controls = positive.filter(([, options]) => options.control_apply_to_uncond === true);
  return shared(positive, shared(controls, other, "control"), "gligen");
}

function shared(from: Conditioning, to: Conditioning, name: string): Conditioning {
  const whole = ([, options]: Conditioning[number]): boolean => isAbsent(options.area);
  const values = from.filter(whole).flatMap(([, options]) => (isAbsent(options[name]) ? [] : [options[name]]));
  const targets = to.filter(whole);
  if (values.length === 0 || targets.some(([, options]) => !isAbsent(options[name]))) return to;
  const byEntry = new Map(values.map((value, i) => [targets[i % targets.length], value]));
  return to.map((entry) => {
    const [tokens, options] = entry;
    return byEntry.has(entry) ? [tokens, { ...options, [name]: byEntry.get(entry) }] : entry;
  });
}

const isAbsent = (value: unknown): boolean => value === undefined || value === null;
