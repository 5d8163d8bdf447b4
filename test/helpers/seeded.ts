/** A repeatable source of whole numbers below n, for property tests. */
export function seededInts(seed: number): (n: number) => number {
  let state = seed >>> 0;
  return (n) => {
    // mulberry32
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) % n;
  };
}
