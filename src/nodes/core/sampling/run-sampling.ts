import { type Sampled, type SampleOptions, sample } from "../../../host/sampling/sample.js";
import type { NodeContext } from "../../define.js";

/** Samples in a node: its signal stops the run, and each step is reported as progress. */
export const sampledIn = (context: NodeContext, options: Omit<SampleOptions, "signal" | "onStep">): Promise<Sampled> =>
  sample({
    ...options,
    signal: context.signal,
    onStep: ({ step, total }) => context.progress(step + 1, total),
  });
