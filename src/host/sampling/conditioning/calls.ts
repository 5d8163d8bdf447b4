import { Tensor } from "../../../tensor/tensor.js";
import type { Conditioning } from "../../types.js";
import { type Area, clipped, feathered } from "./areas.js";
import type { Entry } from "./entries.js";

/** Weight of one part of a model call in the estimate of its side: a number, or a mask [1 or B, h, w] over its area. */
export interface Part {
  readonly side: number;
  readonly entry: Conditioning[number];
  readonly area: Area;
  readonly weight: number | Tensor;
  /** Whether the part is the whole estimate of its side. */
  readonly isAll: boolean;
}

/** One call of the model: parts of equal size, in the order in which it evaluates them. */
export interface Call {
  readonly parts: readonly Part[];
  readonly entries: Conditioning;
  /** Whether each part is the whole latent. */
  readonly isWhole: boolean;
}

/** Added to the sum of weights, so that cells which nothing covers are 0 and not NaN. */
const NO_WEIGHT = 1e-37;

interface Weighed {
  readonly side: number;
  readonly entry: Entry;
  readonly area: Area;
}

/** Model calls that evaluate these entries of each side on latents of this shape. */
export function callsOf(sides: readonly (readonly Entry[])[], shape: readonly number[]): Call[] {
  const [batch, , rows, columns] = shape as [number, number, number, number];
  const weighed = sides.map((entries, side) =>
    entries.map((entry) => ({ side, entry, area: clipped(entry.area, rows, columns) })),
  );
  let parts = weighed.flatMap((entries) => partsOf(entries, [batch, rows, columns]));
  const calls: Call[] = [];
  while (parts.length > 0) {
    const first = parts[0]!;
    const together: Part[] = [];
    const others: Part[] = [];
    for (const part of parts) (part === first || fitTogether(part, first) ? together : others).push(part);
    // the last first: the negative side, as the reference has it
    together.reverse();
    calls.push({
      parts: together,
      entries: together.map(({ entry }) => entry),
      isWhole: first.area.height === rows && first.area.width === columns,
    });
    parts = others;
  }
  return calls;
}

/** Entries of one side with their shares of its estimate. */
function partsOf(entries: readonly Weighed[], sides: readonly [number, number, number]): Part[] {
  const isUniform = entries.every(({ entry }) => entry.area === undefined && entry.mask === undefined);
  const weights = isUniform ? uniformWeights(entries) : cellWeights(entries, sides);
  return entries.map(({ side, entry, area }, i) => ({
    side,
    entry: entry.conditioning,
    area,
    weight: weights[i]!,
    isAll: entries.length === 1 && weights[i] === 1,
  }));
}

function uniformWeights(entries: readonly Weighed[]): number[] {
  const total = entries.reduce((sum, { entry }) => sum + entry.strength, NO_WEIGHT);
  return entries.map(({ entry }) => entry.strength / total);
}

/** Shares that differ from cell to cell: [1, h, w], or where a mask has several [B, h, w]. */
function cellWeights(entries: readonly Weighed[], [batch, rows, columns]: readonly [number, number, number]): Tensor[] {
  const count = entries.some(({ entry }) => (entry.mask?.shape[0] ?? 1) > 1) ? batch : 1;
  const total = new Float64Array(count * rows * columns).fill(NO_WEIGHT);
  const own = entries.map((one) => weightsOf(one, [count, rows, columns]));
  const eachCell = (area: Area, visit: (i: number, at: number) => void): void => {
    const { height, width, y, x } = area;
    for (let i = 0; i < count * height * width; i++) {
      const [item, row] = [Math.floor(i / (height * width)), Math.floor(i / width) % height];
      visit(i, (item * rows + y + row) * columns + x + (i % width));
    }
  };
  for (const [k, { area }] of entries.entries()) eachCell(area, (i, at) => (total[at]! += own[k]![i]!));
  return entries.map(({ area }, k) => {
    const share = Tensor.unfilled([count, area.height, area.width]);
    const values = share.data;
    eachCell(area, (i, at) => (values[i] = own[k]![i]! / total[at]!));
    return share;
  });
}

/** Weights of an entry over its area: mask and strengths, or strength falling towards the borders. */
function weightsOf({ entry, area }: Weighed, [count, rows, columns]: readonly [number, number, number]): Float64Array {
  const { height, width, y, x } = area;
  const { mask, strength, maskStrength } = entry;
  const plane = height * width;
  const edges = mask === undefined ? feathered(area, rows, columns) : undefined;
  return Float64Array.from({ length: count * plane }, (_, i) => {
    if (mask === undefined) return edges![i % plane]! * strength;
    const item = Math.floor(i / plane) % mask.shape[0]!;
    const row = y + (Math.floor(i / width) % height);
    return mask.data[(item * rows + row) * columns + x + (i % width)]! * maskStrength * strength;
  });
}

/** Times that a context may repeat so that another one is as long. */
const MOST_REPEATS = 4;

/** Whether one call can evaluate both: areas of one size, contexts that can be made equally long, one control. */
function fitTogether(a: Part, b: Part): boolean {
  if (a.area.height !== b.area.height || a.area.width !== b.area.width) return false;
  const [[one, options], [other, otherOptions]] = [a.entry, b.entry];
  if (options.control !== otherOptions.control || one.shape.at(-1) !== other.shape.at(-1)) return false;
  const [length, otherLength] = [one.shape[1] ?? 1, other.shape[1] ?? 1];
  if (length === otherLength) return true;
  const [short, long] = [Math.min(length, otherLength), Math.max(length, otherLength)];
  return short > 0 && long / divisor(short, long) <= MOST_REPEATS;
}

/** Greatest common divisor. */
const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b));
