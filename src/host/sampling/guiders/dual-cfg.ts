import type { Term } from "../../../tensor/ops.js";
import { Tensor } from "../../../tensor/tensor.js";
import { withSharedOptions } from "../shared-options.js";
import { Estimate } from "../sum.js";
import { type GuidanceInput, type GuidanceMethod, type GuidedEstimate, guided, isOne } from "./cfg.js";
import type { DualCfgGuider } from "./guider.js";

/** Guidance of two conditionings: from the negative side to the second one, and from there to the first. */
export function dualGuidance(guider: DualCfgGuider): GuidanceMethod {
  const { cond1, cond2, negative, style } = guider;
  return {
    sides: [withSharedOptions(cond1, negative), withSharedOptions(cond1, cond2), cond1],
    negative: 0,
    areaOrder: [2, 1, 0],
    unused: style === "regular" ? unusedSides(guider) : [],
    guide: (input) => (style === "regular" ? added(input, guider) : nested(input, guider)),
  };
}

function unusedSides({ cfgConds, cfgCond2Negative }: DualCfgGuider): number[] {
  if (!isOne(cfgCond2Negative)) return [];
  return isOne(cfgConds) ? [0, 1] : [0];
}

/** The second conditioning against the negative side, plus (first - second) * cfgConds. */
async function added(input: GuidanceInput, { cfgConds, cfgCond2Negative }: DualCfgGuider): Promise<GuidedEstimate> {
  const [negative, second, first] = input.estimates;
  const base = await guided(input, second, negative, cfgCond2Negative);
  const zeros = (): Tensor => Tensor.zeros(input.x.shape);
  const terms: Term[] = [...base.terms, [cfgConds, first ?? zeros()], [-cfgConds, second ?? zeros()]];
  return { denoised: new Estimate(terms), uncond: negative };
}

/** The first conditioning against the second, and the result against the negative side. */
async function nested(input: GuidanceInput, { cfgConds, cfgCond2Negative }: DualCfgGuider): Promise<GuidedEstimate> {
  const [negative, second, first] = input.estimates;
  const inner = await guided(input, first, second, cfgConds);
  const terms: Term[] = [
    ...inner.terms.map(([coefficient, x]): Term => [cfgCond2Negative * coefficient, x]),
    [1 - cfgCond2Negative, negative ?? Tensor.zeros(input.x.shape)],
  ];
  return { denoised: new Estimate(terms), uncond: second };
}
