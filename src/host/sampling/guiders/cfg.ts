import { describe, LatentkitError } from "../../../base/errors.js";
import type { Term } from "../../../tensor/ops.js";
import { Tensor } from "../../../tensor/tensor.js";
import type { Conditioning, Guidance, GuidanceStep } from "../../types.js";
import type { Estimates } from "../conditioning/estimator.js";
import { withSharedOptions } from "../shared-options.js";
import { Estimate } from "../sum.js";
import type { BasicGuider, CfgGuider } from "./guider.js";

/** One noise level for guidance. */
export interface GuidanceInput {
  readonly x: Tensor;
  readonly sigma: number;
  /** Estimates of the method's sides, in its order. */
  readonly estimates: Estimates;
  readonly guidance: Guidance | undefined;
  predict: GuidanceStep["predict"];
  /** Returns the weighted sum of terms as a new tensor, in the memory of an estimate that is no longer read. */
  sum(terms: readonly Term[]): Tensor;
}

/** The guided estimate, and that of the negative side alone; undefined counts as zeros. */
export interface GuidedEstimate {
  readonly denoised: Estimate;
  readonly uncond: Tensor | undefined;
}

/** A guider's way from conditionings to one estimate. */
export interface GuidanceMethod {
  /** The sides, in the order in which the model is asked for them. */
  readonly sides: readonly Conditioning[];
  /** The side that guidance moves away from; -1 of none. */
  readonly negative: number;
  /** Order in which the sides give each other their areas. */
  readonly areaOrder: readonly number[];
  /** Sides that the guided estimate does not need. */
  readonly unused: readonly number[];
  guide(input: GuidanceInput): GuidedEstimate | Promise<GuidedEstimate>;
}

/** Whether a factor is 1, within what counts as equal in the reference. */
export const isOne = (cfg: number): boolean => Math.abs(cfg - 1) <= 1e-9 * Math.max(Math.abs(cfg), 1);

/** Guidance of a positive and a negative side; the latter is not needed where cfg is 1. */
export const cfgGuidance = ({ positive, negative, cfg }: CfgGuider): GuidanceMethod => ({
  sides: [positive, withSharedOptions(positive, negative)],
  negative: 1,
  areaOrder: [0, 1],
  unused: isOne(cfg) ? [1] : [],
  guide: (input) => {
    const [cond, uncond] = input.estimates;
    if (input.guidance === undefined) return { denoised: mixed(input, cond, uncond, cfg), uncond };
    return guidedBy(input.guidance, input, cond, uncond, cfg);
  },
});

/** The estimate of one side; the negative one is zeros. */
export const basicGuidance = ({ positive }: BasicGuider): GuidanceMethod => ({
  sides: [positive],
  negative: -1,
  areaOrder: [0],
  unused: [],
  // not async without guidance of the model: a promise more for each step would show beside a step of a small latent
  guide: (input) => {
    const [cond] = input.estimates;
    if (input.guidance === undefined) return { denoised: mixed(input, cond, undefined, 1), uncond: undefined };
    return guidedBy(input.guidance, input, cond, undefined, 1);
  },
});

/** uncond + (cond - uncond) * cfg, or as the model's own guidance has it. */
export async function guided(
  input: GuidanceInput,
  cond: Tensor | undefined,
  uncond: Tensor | undefined,
  cfg: number,
): Promise<Estimate> {
  if (input.guidance === undefined) return mixed(input, cond, uncond, cfg);
  return (await guidedBy(input.guidance, input, cond, uncond, cfg)).denoised;
}

async function guidedBy(
  guidance: Guidance,
  input: GuidanceInput,
  cond: Tensor | undefined,
  uncond: Tensor | undefined,
  cfg: number,
): Promise<GuidedEstimate> {
  const { combine } = guidance;
  const step = combine === undefined ? undefined : stepOf(input, cond, uncond, cfg);
  const denoised =
    step === undefined ? mixed(input, cond, uncond, cfg) : estimateOf(input.x, await combine!.call(guidance, step));
  return { denoised: await changed(input, denoised, cond, uncond, cfg), uncond };
}

/** A guided estimate after the changes that the model's own guidance makes to it. */
export async function changed(
  input: GuidanceInput,
  denoised: Estimate,
  cond: Tensor | undefined,
  uncond: Tensor | undefined,
  cfg: number,
): Promise<Estimate> {
  const after = input.guidance?.after ?? [];
  if (after.length === 0) return denoised;
  const step = stepOf(input, cond, uncond, cfg);
  let result = input.sum(denoised.terms);
  for (const change of after) result = checked(input.x, await change(result, step));
  return new Estimate([[1, result]]);
}

function mixed({ x }: GuidanceInput, cond: Tensor | undefined, uncond: Tensor | undefined, cfg: number): Estimate {
  const terms: Term[] = [];
  if (cond !== undefined) terms.push([isOne(cfg) ? 1 : cfg, cond]);
  if (uncond !== undefined && !isOne(cfg)) terms.push([1 - cfg, uncond]);
  if (terms.length === 0) terms.push([1, Tensor.zeros(x.shape)]);
  return new Estimate(terms);
}

function stepOf(
  { x, sigma, predict, sum }: GuidanceInput,
  cond: Tensor | undefined,
  uncond: Tensor | undefined,
  cfg: number,
): GuidanceStep {
  const zeros = (): Tensor => Tensor.zeros(x.shape);
  return { x, sigma, cond: cond ?? zeros(), uncond: uncond ?? zeros(), cfg, predict, sum };
}

function estimateOf(x: Tensor, combined: Tensor | readonly Term[]): Estimate {
  if (!Array.isArray(combined) || combined.length === 0) return new Estimate([[1, checked(x, combined)]]);
  return new Estimate(combined.map(([coefficient, tensor]): Term => [coefficient, checked(x, tensor)]));
}

function checked(x: Tensor, estimate: unknown): Tensor {
  if (estimate instanceof Tensor && estimate.hasShape(x)) return estimate;
  const expected = `a tensor of shape [${x.shape.join(", ")}]`;
  throw new LatentkitError("tensor.bad-shape", `guidance: expected ${expected}, received ${describe(estimate)}.`);
}
