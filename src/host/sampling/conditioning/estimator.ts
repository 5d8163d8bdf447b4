import { describe, LatentkitError } from "../../../base/errors.js";
import { addMasked } from "../../../tensor/areas.js";
import { releaseMemory } from "../../../tensor/device-values.js";
import type { Term } from "../../../tensor/ops.js";
import { cropped, joined, narrowed, repeated } from "../../../tensor/parts.js";
import { Tensor } from "../../../tensor/tensor.js";
import type { Model } from "../../types.js";
import { type RepeatedSum, sumOf } from "../sum.js";
import { type Area, sameArea } from "./areas.js";
import { type Call, callsOf, type Part } from "./calls.js";
import type { Entry } from "./entries.js";

/** A model that can denoise. */
export type Denoiser = Model & Required<Pick<Model, "predict">>;

/** The estimate of each side; undefined where nothing was evaluated, which counts as zeros. */
export type Estimates = (Tensor | undefined)[];

const NONE: readonly number[] = [];

/** Estimates of a model for sides of conditioning, on latents of one shape. */
export class Estimator {
  /** Model calls of the entries that took part last; they change with the noise level only where one has a range. */
  private calls: readonly Call[] = [];
  private active: string | undefined;
  private skipped: readonly number[] | undefined;
  private readonly hasRanges: boolean;
  /** Input of the last call, memory of the next one of the same parts. */
  private spare: { readonly call: Call; readonly input: Tensor } | undefined;
  /** A latent `repeats` times: the input of calls on its first items. */
  input: RepeatedSum | undefined;

  constructor(
    private readonly model: Denoiser,
    /** Entries of each side. */
    private readonly entries: readonly (readonly Entry[])[],
    private readonly shape: readonly number[],
    private readonly signal?: AbortSignal,
  ) {
    this.hasRanges = this.entries.some((side) => side.some(({ from, to }) => from < Infinity || to > -Infinity));
  }

  /** Times that the next call will probably have x in its input, one after the other. */
  get repeats(): number {
    const { calls } = this;
    return calls.length === 1 && calls[0]!.isWhole ? calls[0]!.parts.length : 1;
  }

  /** Evaluates the sides that are not `skipped` on x at a noise level. */
  async estimate(x: Tensor, sigma: number, skipped: readonly number[] = NONE): Promise<Estimates> {
    const sums: Estimates = new Array(this.entries.length).fill(undefined);
    let terms: Term[][] | undefined;
    for (const call of this.callsAt(sigma, skipped)) {
      const { parts, isWhole } = call;
      const like = isWhole ? x : partOf(x, parts[0]!.area);
      const prepared = this.preparedFor(x, call);
      const input = prepared ?? inputOf(x, parts, like, this.spareOf(call));
      this.signal?.throwIfAborted();
      const estimate = this.checked(await this.model.predict(input, sigma, call.entries, this.signal), input);
      if (prepared === undefined && input !== x && input.memory !== estimate.memory) this.spare = { call, input };
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
    this.spareOf(undefined);
  }

  /** The spare input where it is of this call; any other goes to the pool. */
  private spareOf(call: Call | undefined): Tensor | undefined {
    const spare = this.spare;
    this.spare = undefined;
    if (spare === undefined || spare.call === call) return spare?.input;
    releaseMemory(spare.input.memory);
    return undefined;
  }

  /** Model calls of the sides that are not `skipped` at a noise level. */
  callsAt(sigma: number, skipped: readonly number[]): readonly Call[] {
    if (!this.hasRanges && skipped === this.skipped) return this.calls;
    this.skipped = skipped;
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

  /** `input`, where it is that of this call. */
  private preparedFor(x: Tensor, { parts, isWhole }: Call): Tensor | undefined {
    if (this.input?.first !== x || !isWhole) return undefined;
    const { batch } = this.input;
    return batch.size === parts.length * x.size ? batch : undefined;
  }

  private checked(estimate: unknown, input: Tensor): Tensor {
    if (estimate instanceof Tensor && estimate.hasShape(input)) return estimate;
    const expected = `a tensor of shape [${input.shape.join(", ")}]`;
    const message = `Model ${this.model.sampling.name}, predict: expected ${expected}, received ${describe(estimate)}.`;
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

/** The i-th of the equal parts of a batch, in its memory where that is the CPU's. */
function itemsLike(batch: Tensor, i: number, like: Tensor): Tensor {
  if (batch.onDevice !== undefined) return narrowed(batch, 0, i * like.shape[0]!, like.shape[0]!);
  return batch.size === like.size ? batch : batch.part(i * like.size, like);
}

/** Returns the model where it can denoise. Fails with host.missing. */
export function requireDenoiser(model: Model): Denoiser {
  if (typeof model.predict === "function") return model as Denoiser;
  throw new LatentkitError(
    "host.missing",
    `Model ${model.sampling.name} cannot denoise: its host offers only the noise schedule.`,
  );
}
