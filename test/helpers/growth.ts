import assert from "node:assert/strict";
import { cpuMsSince } from "./cpu-time.js";

const FACTOR = 16;
/** Thrice for each doubling, for caches and garbage: linear work takes 16 times as long, quadratic work 256 times. */
const MOST = 81;
/** Shorter times are not measured. */
const LEAST_MS = 1;
/** On a busy machine other processes empty the caches: the best of few tries is not always a good one. */
const TRIES = 25;

/** Fails if 16 times the input takes more than 81 times the processor's time, each at its best of some tries. */
export async function growsLinearly<T>(
  size: number,
  prepare: (size: number) => T | Promise<T>,
  work: (input: T) => unknown,
): Promise<void> {
  const inputs = [await prepare(size), await prepare(FACTOR * size)];
  const best = inputs.map(() => Number.POSITIVE_INFINITY);
  const isLinear = () => best[1]! <= Math.max(LEAST_MS, MOST * best[0]!);
  for (let i = 0; i < TRIES && !(i > 0 && isLinear()); i++)
    for (const [at, input] of inputs.entries()) {
      const start = process.cpuUsage();
      await work(input);
      best[at] = Math.min(best[at]!, cpuMsSince(start));
    }
  assert.ok(isLinear(), `${best[0]} ms for ${size}, ${best[1]} ms for ${FACTOR * size}`);
}
