import { describe, LatentkitError } from "../../base/errors.js";
import { productOfItems, sumOfItems } from "../../tensor/items.js";
import { type Term, weightedSum } from "../../tensor/ops.js";
import { Tensor } from "../../tensor/tensor.js";
import type { Conditioning, Guidance, GuidanceStep, Model } from "../types.js";
import { withSharedOptions } from "./conditioning.js";
import type { Estimates } from "./estimator.js";
import { Estimate } from "./solver.js";

/** A model and how its estimates for several conditionings become one: the value of a GUIDER socket. */
export type Guider = { readonly model: Model } & (
  | { readonly kind: "cfg"; readonly positive: Conditioning; readonly negative: Conditioning; readonly cfg: number }
  | { readonly kind: "basic"; readonly positive: Conditioning }
  | {
      readonly kind: "dual-cfg";
      readonly cond1: Conditioning;
      readonly cond2: Conditioning;
      readonly negative: Conditioning;
      readonly cfgConds: number;
      readonly cfgCond2Negative: number;
      readonly style: "regular" | "nested";
    }
  | {
      readonly kind: "perp-neg";
      readonly positive: Conditioning;
      readonly negative: Conditioning;
      readonly empty: Conditioning;
      readonly cfg: number;
      readonly negScale: number;
    }
);
type GuiderOf<Kind> = Extract<Guider, { readonly kind: Kind }>;

/** The method of a guider. */
export function guidanceOf(guider: Guider): GuidanceMethod {
  switch (guider.kind) {
    case "cfg":
      return {
        sides: [guider.positive, withSharedOptions(guider.positive, guider.negative)],
        negative: 1,
        areaOrder: [0, 1],
        // the negative side is not needed if cfg is 1
        unused: isOne(guider.cfg) ? [1] : [],
        guide: (input) => guidedSides(input, guider.cfg),
      };
    case "basic":
      return {
        sides: [guider.positive],
        negative: -1,
        areaOrder: [0],
        unused: [],
        guide: (input) => guidedSides(input, 1),
      };
    case "dual-cfg":
      return dualGuidance(guider);
    case "perp-neg":
      return perpNegGuidance(guider);
  }
}

/** One noise level for guidance. */
interface GuidanceInput {
  readonly x: Tensor;
  readonly sigma: number;
  /** Estimates of the method's sides, in its order. */
  readonly estimates: Estimates;
  readonly guidance: Guidance | undefined;
  predict: GuidanceStep["predict"];
  /** Returns the weighted sum of terms as a new tensor, in the memory of an estimate that is no longer read. */
  sum(terms: readonly Term[]): Tensor;
}

/** The guided estimate, and that of only the negative side; undefined counts as zeros. */
export interface GuidedEstimate {
  readonly denoised: Estimate;
  readonly uncond: Tensor | undefined;
}

/** A guider's way from conditionings to one estimate. */
export interface GuidanceMethod {
  /** The sides, in the order in which the model is asked for them. */
  readonly sides: readonly Conditioning[];
  /** The side that guidance moves away from; -1: none. */
  readonly negative: number;
  /** Order in which the sides give each other their areas. */
  readonly areaOrder: readonly number[];
  /** Sides that the guided estimate does not need. */
  readonly unused: readonly number[];
  guide(input: GuidanceInput): GuidedEstimate | Promise<GuidedEstimate>;
}

/** Whether a factor is 1, within what counts as equal in the reference. */
const isOne = (cfg: number): boolean => Math.abs(cfg - 1) <= 1e-9 * Math.max(Math.abs(cfg), 1);

/** Guidance of the positive side by the negative one, which may be zeros. */
function guidedSides(input: GuidanceInput, cfg: number): GuidedEstimate | Promise<GuidedEstimate> {
  const [cond, uncond] = input.estimates;
  // not async without guidance of the model: a promise more for each step would show beside a step of a small latent
  if (input.guidance === undefined) return { denoised: mixed(input, cond, uncond, cfg), uncond };
  return guidedBy(input.guidance, input, cond, uncond, cfg);
}

/** uncond + (cond - uncond) * cfg, or as the model's own guidance has it. */
async function guided(
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
async function changed(
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

/** Guidance of two conditionings: from the negative side to the second one, and from there to the first. */
function dualGuidance(guider: GuiderOf<"dual-cfg">): GuidanceMethod {
  const { cond1, cond2, negative, style } = guider;
  return {
    sides: [withSharedOptions(cond1, negative), withSharedOptions(cond1, cond2), cond1],
    negative: 0,
    areaOrder: [2, 1, 0],
    unused: style === "regular" ? unusedSides(guider) : [],
    guide: (input) => (style === "regular" ? added(input, guider) : nested(input, guider)),
  };
}

function unusedSides({ cfgConds, cfgCond2Negative }: GuiderOf<"dual-cfg">): number[] {
  if (!isOne(cfgCond2Negative)) return [];
  return isOne(cfgConds) ? [0, 1] : [0];
}

/** The second conditioning against the negative side, plus (first - second) * cfgConds. */
async function added(
  input: GuidanceInput,
  { cfgConds, cfgCond2Negative }: GuiderOf<"dual-cfg">,
): Promise<GuidedEstimate> {
  const [negative, second, first] = input.estimates;
  const base = await guided(input, second, negative, cfgCond2Negative);
  const zeros = (): Tensor => Tensor.zeros(input.x.shape);
  const terms: Term[] = [...base.terms, [cfgConds, first ?? zeros()], [-cfgConds, second ?? zeros()]];
  return { denoised: new Estimate(terms), uncond: negative };
}

/** The first conditioning against the second, and the result against the negative side. */
async function nested(
  input: GuidanceInput,
  { cfgConds, cfgCond2Negative }: GuiderOf<"dual-cfg">,
): Promise<GuidedEstimate> {
  const [negative, second, first] = input.estimates;
  const inner = await guided(input, first, second, cfgConds);
  const terms: Term[] = [
    ...inner.terms.map(([coefficient, x]): Term => [cfgCond2Negative * coefficient, x]),
    [1 - cfgCond2Negative, negative ?? Tensor.zeros(input.x.shape)],
  ];
  return { denoised: new Estimate(terms), uncond: second };
}

/** Guidance by Perp-Neg, with the sides positive, negative and empty. */
const perpNegGuidance = (guider: GuiderOf<"perp-neg">): GuidanceMethod => ({
  sides: [
    guider.positive,
    withSharedOptions(guider.positive, guider.negative),
    withSharedOptions(guider.positive, guider.empty),
  ],
  negative: 1,
  areaOrder: [0, 2, 1],
  unused: [],
  guide: async (input) => {
    const [positive, negative, empty] = input.estimates;
    const zeros = (): Tensor => Tensor.zeros(input.x.shape);
    const sides = { positive: positive ?? zeros(), negative: negative ?? zeros(), empty: empty ?? zeros() };
    const denoised = new Estimate([[1, perpendicular(sides, guider.cfg, guider.negScale)]]);
    return { denoised: await changed(input, denoised, positive, negative, guider.cfg), uncond: negative };
  },
});

/**
 * empty + cfg * (p - negScale * (n - p * <n, p> / <p, p>)) with p = positive - empty and n = negative - empty, for each
 * latent of a batch: the part of n along p gives no reason to move away from it. Armandpour et al. 2023, "Re-imagine the
 * Negative Prompt Algorithm".
 */
export function perpendicular(
  { positive, negative, empty }: { positive: Tensor; negative: Tensor; empty: Tensor },
  cfg: number,
  negScale: number,
): Tensor {
  const [p, n] = [positive, negative].map((side) =>
    weightedSum([
      [1, side],
      [-1, empty],
    ]),
  ) as [Tensor, Tensor];
  const squares = productOfItems(p, p);
  const along = productOfItems(n, p).map((product, item) => (squares[item] === 0 ? 0 : product / squares[item]!));
  const toPositive = along.map((share) => cfg * (1 + negScale * share));
  const toNegative = -cfg * negScale;
  return sumOfItems([
    [toPositive.map((share) => 1 - share - toNegative), empty],
    [toPositive, positive],
    [toPositive.map(() => toNegative), negative],
  ]);
}
