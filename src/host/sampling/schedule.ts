import { type ScheduleOptions, sigmas } from "../../tensor/sampling/sigmas.js";

/** Steps of a schedule that one node runs. */
export interface StepWindow {
  /** First step; from the last one on nothing is left to do. */
  readonly start: number;
  /** Step before which sampling ends. */
  readonly end: number;
  /** Leaves the noise of a schedule that ends early; else the last step removes all of it. */
  readonly leavesNoise: boolean;
}

/** Noise levels of a sampler node; none where it has nothing to do. */
export function scheduledSigmas(options: ScheduleOptions, window?: StepWindow): Float32Array {
  const all = sigmas(options);
  if (window === undefined) return all;
  const { start, end, leavesNoise } = window;
  const used = end < all.length - 1 ? all.slice(0, end + 1) : all;
  if (used !== all && !leavesNoise) used[used.length - 1] = 0;
  return start < used.length - 1 ? used.subarray(start) : new Float32Array(0);
}
