// Times one turn of one subject, and sums up the times of all turns.

/** Least time of a timed batch: shorter ones would measure the clock. */
const BATCH_MS = 0.1;
/** Calls this slow need no warm-up in each turn. */
const SLOW_MS = 5;
const FIRST_WARM_UP_MS = 40;

const batches = new WeakMap();

/** Milliseconds of each call (each batch's mean where calls are short) within about `ms`, at least one. */
export async function timesOf(call, ms) {
  if (!batches.has(call)) batches.set(call, await plan(call));
  const { size, isSlow } = batches.get(call);
  if (!isSlow) await repeat(call, size);
  const times = [];
  for (const end = performance.now() + ms; times.length === 0 || performance.now() < end; ) {
    const began = performance.now();
    await repeat(call, size);
    times.push((performance.now() - began) / size);
  }
  return times;
}

async function plan(call) {
  const began = performance.now();
  let calls = 0;
  let one = 0;
  while (calls < 2 || performance.now() - began < FIRST_WARM_UP_MS) {
    const start = performance.now();
    await call();
    one = performance.now() - start;
    if (calls++ > 0 && one > SLOW_MS) break;
  }
  let size = 1;
  for (let took = one; took < BATCH_MS; size *= 2) {
    const start = performance.now();
    await repeat(call, size * 2);
    took = performance.now() - start;
  }
  return { size, isSlow: one > SLOW_MS };
}

/** No await between synchronous calls: it would cost more than they do. */
async function repeat(call, times) {
  for (let i = 0; i < times; i++) {
    const result = call();
    if (result instanceof Promise) await result;
  }
}

/** Median, 10th and 90th percentile. */
export function summary(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share) => {
    const position = share * (sorted.length - 1);
    const low = sorted[Math.floor(position)];
    return low + (sorted[Math.ceil(position)] - low) * (position % 1);
  };
  return { median: at(0.5), p10: at(0.1), p90: at(0.9) };
}
