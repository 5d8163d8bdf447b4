import { expm1 } from "../../native/elementary.js";
import type { ModelSampling } from "./model-sampling.js";
import { isFlow } from "./noise-level.js";

/** Share of the clean latent at a noise level: 1 - sigma of a flow, else 1. */
export const signalOf = (sampling: ModelSampling, sigma: number): number => (isFlow(sampling) ? 1 - sigma : 1);

/** Weight of a constant estimate over a way h: 1 - exp(-h), which is h * phi_1(-h) of exponential integrators. */
export const firstWeight = (h: number): number => -expm1(-h);

/** Weight of an estimate that grows linearly over a way h, 0 to 1: h * phi_2(-h), which is 1 - (1 - exp(-h)) / h. */
export function secondWeight(h: number): number {
  // its series, where the difference would cancel
  if (Math.abs(h) < 1e-4) return h / 2 - (h * h) / 6 + (h * h * h) / 24;
  return 1 + expm1(-h) / h;
}
