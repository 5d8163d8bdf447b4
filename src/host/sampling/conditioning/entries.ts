import { describe, LatentkitError } from "../../../base/errors.js";
import { resizeBilinear } from "../../../tensor/ops.js";
import type { ModelSampling } from "../../../tensor/sampling/model-sampling.js";
import { borderAt } from "../../../tensor/sampling/percent-to-sigma.js";
import { Tensor } from "../../../tensor/tensor.js";
import type { Conditioning } from "../../types.js";
import { type Area, boundsOf, clipped, isInside, readArea, sameArea } from "./areas.js";

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
    const mask = readMask(options.mask, rows, columns);
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
 * strength, mask and range, for the conditioning of its own smallest entry around that area.
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

/** A mask [H, W] or [n, H, W] of any sides, resized. */
function readMask(mask: unknown, rows: number, columns: number): Tensor | undefined {
  if (mask === undefined || mask === null) return undefined;
  const [height, width] = mask instanceof Tensor ? mask.shape.slice(-2) : [];
  if (!(mask instanceof Tensor) || height === undefined || width === undefined || mask.size === 0) {
    const expected = "a mask [B, H, W] or [H, W] with elements";
    const message = `conditioning, mask: expected ${expected}, received ${describe(mask)}.`;
    throw new LatentkitError("tensor.bad-shape", message);
  }
  const planes = mask.reshape([mask.size / (height * width), height, width]);
  return height === rows && width === columns ? planes : resizeBilinear(planes, rows, columns);
}
