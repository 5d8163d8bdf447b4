import { types } from "node:util";
import { describe, LatentkitError } from "../../base/errors.js";
import { loadNative } from "../../native/load.js";
import { deferUpload } from "../../tensor/device/compute.js";
import { releaseMemory } from "../../tensor/device-values.js";
import { scaledRandn } from "../../tensor/random.js";
import { roundedTime } from "../../tensor/rounded-time.js";
import { seedSequence } from "../../tensor/seed-sequence.js";
import { outputOf } from "../../tensor/shape.js";
import { elementCount, Tensor } from "../../tensor/tensor.js";
import { collectParts, rootOf, type TimeParts } from "./brownian-tree.js";
import { CutRows, rangeEnds } from "./cut-rows.js";

/** Noise levels that a path spans: the positive ones of a schedule, or its ends, which are above 0. */
export type BrownianSpan = Float32Array | { readonly min: number; readonly max: number };

/** Draws N(0, 1) for the way from one noise level to the next. */
export interface BrownianNoise {
  /** Returns a tensor that the caller may write over, `out` where it is set. */
  (sigma: number, next: number, out?: Tensor): Tensor;
  /** Returns the memory of the path to the pool, at the end of a run; a later request draws what it needs anew. */
  release(): void;
}

/** Rows of two ways from the root to a millionth, of paths that are not huge. */
const expectedRows = (length: number): number => 2 * (32 - Math.clz32(Math.ceil(Math.min(length, 1000) * 1e6) + 1));

/**
 * Noise of the SDE samplers: N(0, 1) of a shape for the way between two noise levels, increments of one Brownian path per
 * run, bit for bit torchsde's BrownianTree as ComfyUI seeds it. Values do not depend on earlier calls; levels
 * beyond the span count as its ends, and a way of less than a millionth has no noise. Holds about 45 tensors of the
 * shape until it is released. Fails with value.out-of-range and tensor.bad-shape. @internal
 */
export function brownianNoise(seed: bigint, sigmas: BrownianSpan, shape: readonly number[]): BrownianNoise {
  const size = elementCount(shape);
  const { min, max } = spanOf(sigmas);
  const [start, end] = [roundedTime(min), roundedTime(max)];
  const seeds = seedSequence(seed);
  const root = rootOf(start, end);
  let whole: Tensor | undefined;
  const rows = new CutRows(rangeEnds(size, loadNative().threads()), expectedRows(end - start));
  const noiseOf = (sigma: number, next: number, out?: Tensor): Tensor => {
    const [from, to] = [levelOf("sigma", sigma), levelOf("next sigma", next)];
    const timeOf = (level: number): number => Math.min(Math.max(roundedTime(level), start), end);
    const [low, high] = [timeOf(Math.min(from, to)), timeOf(Math.max(from, to))];
    if (low === high || size === 0) return Tensor.zeros(shape);
    whole ??= scaledRandn([size], Math.sqrt(max - min), { seed: seeds([]) });
    const parts: TimeParts = { terms: [], cuts: [] };
    collectParts(root, low, high, seeds, parts);
    // torch's square root of a float32
    const length = Math.fround(Math.sqrt(Math.fround(Math.abs(to - from))));
    const noise = outputOf("brownianNoise", shape, out);
    rows.compute(parts, (lefts, cuts, terms) => {
      loadNative().brownian(
        noise.data,
        whole!.data,
        lefts,
        rows.pitch,
        rows.ends,
        cuts,
        terms,
        from < to ? length : -length,
      );
    });
    return out === undefined ? deferUpload(noise) : noise;
  };
  const release = (): void => {
    rows.release();
    if (whole !== undefined) releaseMemory(whole.memory);
    whole = undefined;
  };
  return Object.assign(noiseOf, { release });
}

/** Ends of the path, doubles of float32; 0 to 0 where no level is above 0. */
function spanOf(sigmas: BrownianSpan): { min: number; max: number } {
  const levels = types.isFloat32Array(sigmas) ? sigmas : [sigmas.min, sigmas.max];
  let [min, max] = [Number.POSITIVE_INFINITY, 0];
  for (const sigma of levels) {
    const level = levelOf("sigma", sigma);
    if (level > 0) min = Math.min(min, level);
    max = Math.max(max, level);
  }
  return max === 0 ? { min: 0, max: 0 } : { min, max };
}

/** Largest noise level: products of a time and an increment stay far below the largest float32. */
const MOST = 1e20;

/** A noise level as float32. */
function levelOf(subject: string, sigma: number): number {
  const level = Math.fround(sigma);
  if (Math.abs(sigma) <= MOST) return level;
  const message = `Brownian noise, ${subject}: expected a number up to ${MOST}, received ${describe(sigma)}.`;
  throw new LatentkitError("value.out-of-range", message);
}
