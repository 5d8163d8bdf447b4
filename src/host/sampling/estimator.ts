import { describe, LatentkitError } from "../../base/errors.js";
import { releaseMemory } from "../../tensor/deferred-values.js";
import { addMasked } from "../../tensor/latents.js";
import type { Term } from "../../tensor/ops.js";
import { cropped, joined, narrowed, repeated } from "../../tensor/parts.js";
import { Tensor } from "../../tensor/tensor.js";
import type { Conditioning, Model } from "../types.js";
import { type Area, clipped, type Entry, feathered, sameArea } from "./conditioning.js";
import { type RepeatedSum, sumOf } from "./solver.js";

/** A model that can denoise. */
export type Denoiser = Model & Required<Pick<Model, "predict">>;

/** The estimate of each side; undefined if nothing was evaluated, which counts as zeros. */
export type Estimates = (Tensor | undefined)[];

const NONE: readonly number[] = [];

/** Estimates of a model for sides of conditioning, on latents of one shape. */
export class Estimator {
  /** Model calls of the entries that took part last; they change with the noise level only if one has a range. */
  #calls: readonly Call[] = [];
  #active: string | undefined;
  #skipped: readonly number[] | undefined;
  readonly #hasRanges: boolean;
  /** Input of the last call, memory of the next one of the same parts. */
  #spare: { readonly call: Call; readonly input: Tensor } | undefined;
  /** A latent `repeats` times: the input of calls on its first items. */
  input: RepeatedSum | undefined;
  readonly #model: Denoiser;
  /** Entries of each side. */
  readonly #entries: readonly (readonly Entry[])[];
  readonly #shape: readonly number[];
  readonly #signal: AbortSignal | undefined;

  constructor(model: Denoiser, entries: readonly (readonly Entry[])[], shape: readonly number[], signal?: AbortSignal) {
    this.#model = model;
    this.#entries = entries;
    this.#shape = shape;
    this.#signal = signal;
    this.#hasRanges = this.#entries.some((side) => side.some(({ from, to }) => from < Infinity || to > -Infinity));
  }

  /** Times that the next call will probably have x in its input, one after the other. */
  get repeats(): number {
    const calls = this.#calls;
    return calls.length === 1 && calls[0]!.isWhole ? calls[0]!.parts.length : 1;
  }

  /** Evaluates the sides that are not `skipped` on x at a noise level. */
  async estimate(x: Tensor, sigma: number, skipped: readonly number[] = NONE): Promise<Estimates> {
    const sums: Estimates = new Array(this.#entries.length).fill(undefined);
    let terms: Term[][] | undefined;
    for (const call of this.callsAt(sigma, skipped)) {
      const { parts, isWhole } = call;
      const like = isWhole ? x : partOf(x, parts[0]!.area);
      const prepared = this.#preparedFor(x, call);
      const input = prepared ?? inputOf(x, parts, like, this.#spareOf(call));
      this.#signal?.throwIfAborted();
      const estimate = this.#checked(await this.#model.predict(input, sigma, call.entries, this.#signal), input);
      if (prepared === undefined && input !== x && input.memory !== estimate.memory) this.#spare = { call, input };
      for (let i = 0; i < parts.length; i++) {
        const { side, weight, area, isAll } = parts[i]!;
        const own = itemsLike(estimate, i, like);
        if (isAll) sums[side] = own;
        else if (typeof weight === "number") {
          terms ??= sums.map(() => []);
          terms[side]!.push([weight, own]);
        } else {
          const sum = sums[side] ?? Tensor.zeros(x.shape);
          sums[side] = addMasked(sum, own, weight, area.y, area.x, sum);
        }
      }
    }
    if (terms !== undefined) for (const [side, own] of terms.entries()) if (own.length > 0) sums[side] ??= sumOf(own);
    return sums;
  }

  /** Returns memory that is not in use to the pool, at the end of a run. */
  end(): void {
    this.#spareOf(undefined);
  }

  /** The spare input if it is of this call; any other goes to the pool. */
  #spareOf(call: Call | undefined): Tensor | undefined {
    const spare = this.#spare;
    this.#spare = undefined;
    if (spare === undefined || spare.call === call) return spare?.input;
    releaseMemory(spare.input.memory);
    return undefined;
  }

  /** Model calls of the sides that are not `skipped` at a noise level. */
  callsAt(sigma: number, skipped: readonly number[]): readonly Call[] {
    if (!this.#hasRanges && skipped === this.#skipped) return this.#calls;
    this.#skipped = skipped;
    const takesPart = ({ from, to }: Entry): boolean => sigma <= from && sigma >= to;
    const flags = this.#hasRanges
      ? this.#entries.map((side) => side.map((entry) => Number(takesPart(entry))).join(""))
      : "";
    const key = `${skipped} ${flags}`;
    if (key !== this.#active) {
      this.#calls = callsOf(
        this.#entries.map((side, i) => (skipped.includes(i) ? [] : side.filter(takesPart))),
        this.#shape,
      );
      this.#active = key;
    }
    return this.#calls;
  }

  /** `input`, if it is that of this call. */
  #preparedFor(x: Tensor, { parts, isWhole }: Call): Tensor | undefined {
    if (this.input?.first !== x || !isWhole) return undefined;
    const { batch } = this.input;
    return batch.size === parts.length * x.size ? batch : undefined;
  }

  #checked(estimate: unknown, input: Tensor): Tensor {
    if (estimate instanceof Tensor && estimate.hasShape(input)) return estimate;
    const expected = `a tensor of shape [${input.shape.join(", ")}]`;
    const message = `Model ${this.#model.sampling.name}, predict: expected ${expected}, received ${describe(estimate)}.`;
    throw new LatentkitError("tensor.bad-shape", message);
  }
}

/** x for each part of a call, cropped to the part's area; `first` is that of the first part. `out` may be its memory. */
function inputOf(x: Tensor, parts: readonly Part[], first: Tensor, out: Tensor | undefined): Tensor {
  const { area } = parts[0]!;
  if (parts.every((part) => sameArea(part.area, area))) return repeated(first, parts.length, out);
  return joined(
    parts.map(({ area }) => partOf(x, area)),
    0,
    out,
  );
}

const partOf = (x: Tensor, { height, width, y, x: left }: Area): Tensor =>
  cropped(x, 2, { top: y, left, height, width });

/** The i-th of the equal parts of a batch, in its memory if that is the CPU's. */
function itemsLike(batch: Tensor, i: number, like: Tensor): Tensor {
  if (batch.onDevice !== undefined) return narrowed(batch, 0, i * like.shape[0]!, like.shape[0]!);
  return batch.size === like.size ? batch : batch.part(i * like.size, like);
}

/** Returns the model if it can denoise. Fails with host.missing. */
export function requireDenoiser(model: Model): Denoiser {
  if (typeof model.predict === "function") return model as Denoiser;
  throw new LatentkitError(
    "host.missing",
    `Model ${model.sampling.name} cannot denoise: its host provides only the noise schedule.`,
  );
}

/** Weight of one part of a model call in the estimate of its side: a number, or a mask [1 or B, h, w] over its area. */
interface Part {
  readonly side: number;
  readonly entry: Conditioning[number];
  readonly area: Area;
  readonly weight: number | Tensor;
  /** Whether the part is the whole estimate of its side. */
  readonly isAll: boolean;
}

/** One call of the model: parts of equal size, in the order in which it evaluates them. */
interface Call {
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
function callsOf(sides: readonly (readonly Entry[])[], shape: readonly number[]): Call[] {
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

/** Shares that differ from cell to cell: [1, h, w], or if a mask has several [B, h, w]. */
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
