import { type Sampled, type SampleOptions, sample } from "../../../host/sampling/sample.js";
import type { NodeContext } from "../../define.js";

/** Samples in a node: its signal stops the run, and each step is reported as progress. */
export const sampledIn = (
  { signal, progress }: Pick<NodeContext, "signal" | "progress">,
  options: Omit<SampleOptions, "signal" | "onStep">,
): Promise<Sampled> =>
  sample({
    ...options,
    signal,
    onStep: ({ step, total }) => progress(step + 1, total),
  });
