import { describe, LatentkitError } from "../../../base/errors.js";
import { addMasked } from "../../../tensor/areas.js";
import { type Term, weightedSum } from "../../../tensor/ops.js";
import { cropped, joined, narrowed, repeated } from "../../../tensor/parts.js";
import { Tensor } from "../../../tensor/tensor.js";
import type { Conditioning, Model } from "../../types.js";
import { type Area, sameArea } from "./areas.js";
import { type Call, callsOf } from "./calls.js";
import { type Entry, readEntries, shareAreas } from "./entries.js";

/** A model that can denoise. */
export type Denoiser = Model & Required<Pick<Model, "predict">>;

/** The estimate of each side; undefined where nothing was evaluated, which counts as zeros. */
export type Estimates = (Tensor | undefined)[];

/** Terms that one weighted sum takes. */
const MOST_TERMS = 8;

/** Estimates of a model for sides of conditioning, on latents of one shape. */
export class Estimator {
  private readonly entries: readonly Entry[][];
  /** Model calls of the entries that took part last; they change with the noise level only where one has a range. */
  private calls: readonly Call[] = [];
  private active: string | undefined;
  private readonly hasRanges: boolean;

  constructor(
    private readonly model: Denoiser,
    sides: readonly Conditioning[],
    private readonly shape: readonly number[],
    /** Order in which the sides give each other their areas. */
    order: readonly number[],
    private readonly signal?: AbortSignal,
  ) {
    const [, , rows, columns] = shape as [number, number, number, number];
    this.entries = sides.map((side) => readEntries(side, model.sampling, [rows, columns]));
    shareAreas(this.entries, order);
    this.hasRanges = this.entries.some((side) => side.some(({ from, to }) => from < Infinity || to > -Infinity));
  }

  /** Evaluates the sides that are not `skipped` on x at a noise level. */
  async estimate(x: Tensor, sigma: number, skipped: readonly number[] = []): Promise<Estimates> {
    const terms: Term[][] = this.entries.map(() => []);
    const sums: Estimates = this.entries.map(() => undefined);
    for (const call of this.callsAt(sigma, skipped)) {
      const estimate = await this.predict(x, sigma, call);
      for (const [i, part] of call.entries()) {
        const own = narrowed(estimate, 0, i * x.shape[0]!, x.shape[0]!);
        if (typeof part.weight === "number") {
          terms[part.side]!.push([part.weight, own]);
          continue;
        }
        const sum = sums[part.side] ?? Tensor.zeros(x.shape);
        sums[part.side] = addMasked(sum, own, part.weight, part.area.y, part.area.x, sum);
      }
    }
    return sums.map((sum, side) => sum ?? sumOf(terms[side]!));
  }

  private callsAt(sigma: number, skipped: readonly number[]): readonly Call[] {
    const takesPart = ({ from, to }: Entry): boolean => sigma <= from && sigma >= to;
    const flags = this.hasRanges
      ? this.entries.map((side) => side.map((entry) => Number(takesPart(entry))).join(""))
      : "";
    const key = `${skipped} ${flags}`;
    if (key !== this.active) {
      this.calls = callsOf(
        this.entries.map((side, i) => (skipped.includes(i) ? [] : side.filter(takesPart))),
        this.shape,
      );
      this.active = key;
    }
    return this.calls;
  }

  private async predict(x: Tensor, sigma: number, call: Call): Promise<Tensor> {
    if (this.signal?.aborted) throw new LatentkitError("run.interrupted", "The run was interrupted.");
    const input = inputOf(x, call);
    const estimate: unknown = await this.model.predict(
      input,
      sigma,
      call.map(({ entry }) => entry),
      this.signal,
    );
    if (estimate instanceof Tensor && estimate.hasShape(input)) return estimate;
    const expected = `a tensor of shape [${input.shape.join(", ")}]`;
    const message = `Model ${this.model.sampling.name}, predict: expected ${expected}, received ${describe(estimate)}.`;
    throw new LatentkitError("tensor.bad-shape", message);
  }
}

/** x for each part of a call, cropped to the part's area. */
function inputOf(x: Tensor, call: Call): Tensor {
  const { area } = call[0]!;
  if (call.every((part) => sameArea(part.area, area))) return repeated(partOf(x, area), call.length);
  return joined(
    call.map(({ area }) => partOf(x, area)),
    0,
  );
}

const partOf = (x: Tensor, { height, width, y, x: left }: Area): Tensor =>
  cropped(x, 2, { top: y, left, height, width });

/** Weighted sum of any number of terms; undefined of none. */
function sumOf(terms: readonly Term[]): Tensor | undefined {
  const first = terms[0];
  if (first === undefined || (terms.length === 1 && first[0] === 1)) return first?.[1];
  let sum = weightedSum(terms.slice(0, MOST_TERMS));
  for (let at = MOST_TERMS; at < terms.length; at += MOST_TERMS - 1) {
    sum = weightedSum([[1, sum], ...terms.slice(at, at + MOST_TERMS - 1)], sum);
  }
  return sum;
}

/** Returns the model where it can denoise. Fails with host.missing. */
export function requireDenoiser(model: Model): Denoiser {
  if (typeof model.predict === "function") return model as Denoiser;
  throw new LatentkitError(
    "host.missing",
    `Model ${model.sampling.name} cannot denoise: its host offers the noise schedule alone.`,
  );
}
