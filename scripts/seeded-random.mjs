/**
 * A source of whole numbers from 0 to below n, the same for the same seed: mulberry32. 0 where n is below 1.
 *
 * @param {number} seed
 * @returns {(n: number) => number}
 */
export function seededRandom(seed) {
  let state = seed >>> 0;
  return (n) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return n < 1 ? 0 : ((t ^ (t >>> 14)) >>> 0) % n;
  };
}
