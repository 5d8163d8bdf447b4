import type { Conditioning, Model } from "../../types.js";

/** Classifier-free guidance: uncond + (cond - uncond) * cfg. */
export interface CfgGuider {
  readonly kind: "cfg";
  readonly model: Model;
  readonly positive: Conditioning;
  readonly negative: Conditioning;
  readonly cfg: number;
}

/** The estimate of one conditioning, without guidance. */
export interface BasicGuider {
  readonly kind: "basic";
  readonly model: Model;
  readonly positive: Conditioning;
}

/** Guidance from the negative side to a second conditioning, and from that to the first. */
export interface DualCfgGuider {
  readonly kind: "dual-cfg";
  readonly model: Model;
  readonly cond1: Conditioning;
  readonly cond2: Conditioning;
  readonly negative: Conditioning;
  readonly cfgConds: number;
  readonly cfgCond2Negative: number;
  readonly style: "regular" | "nested";
}

/** Guidance away from the part of the negative side that is perpendicular to the positive side. */
export interface PerpNegGuider {
  readonly kind: "perp-neg";
  readonly model: Model;
  readonly positive: Conditioning;
  readonly negative: Conditioning;
  readonly empty: Conditioning;
  readonly cfg: number;
  readonly negScale: number;
}

/** A model and how its estimates for several conditionings become one: the value of a GUIDER socket. */
export type Guider = CfgGuider | BasicGuider | DualCfgGuider | PerpNegGuider;
