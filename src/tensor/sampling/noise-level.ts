import { exp, log } from "../../native/elementary.js";
import type { ModelSampling } from "./model-sampling.js";

/** Whether latents are (1 - sigma) * clean + sigma * noise; else they are clean + sigma * noise. */
export const isFlow = ({ prediction }: ModelSampling): boolean => prediction === "flow";

/** Half the logarithm of the signal-to-noise ratio at sigma: log((1 - sigma) / sigma) of a flow, else -log(sigma). */
export const halfLogSnr = (sampling: ModelSampling, sigma: number): number =>
  isFlow(sampling) ? log((1 - sigma) / sigma) : -log(sigma);

/** Inverse of halfLogSnr. */
export const sigmaOfHalfLogSnr = (sampling: ModelSampling, lambda: number): number =>
  isFlow(sampling) ? 1 / (1 + exp(lambda)) : exp(-lambda);
