import type { Clock } from "../../clock.js";

const MAX_KEYS = 10_000;

/**
 * Allows at most `limit` counts per key in any `windowMs` of the monotonic clock. Exact: it remembers the time of each
 * count. Bounded: beyond `maxKeys` it forgets the least recently used key.
 */
export class RateWindow {
  readonly #limit: number;
  readonly #windowMs: number;
  readonly #clock: Clock;
  readonly #maxKeys: number;
  /** Times of the counts, oldest first; keys in order of last use. */
  readonly #counts = new Map<string, number[]>();

  constructor(options: { limit: number; windowMs: number; clock: Clock; maxKeys?: number }) {
    this.#limit = options.limit;
    this.#windowMs = options.windowMs;
    this.#clock = options.clock;
    this.#maxKeys = options.maxKeys ?? MAX_KEYS;
  }

  /** Milliseconds until `key` may count again; 0: now. */
  waitMs(key: string): number {
    const times = this.#current(key);
    if (times.length < this.#limit) return 0;
    return times[times.length - this.#limit]! + this.#windowMs - this.#clock.monotonic();
  }

  /** Counts once. */
  count(key: string): void {
    const times = this.#current(key);
    times.push(this.#clock.monotonic());
    this.#counts.delete(key);
    this.#counts.set(key, times);
    this.#forgetOldest();
  }

  get size(): number {
    return this.#counts.size;
  }

  #current(key: string): number[] {
    const times = this.#counts.get(key) ?? [];
    const since = this.#clock.monotonic() - this.#windowMs;
    const live = times.findIndex((time) => time > since);
    times.splice(0, live < 0 ? times.length : live);
    return times;
  }

  /** Checks two keys per count, so that expired keys are removed even where no key comes back. */
  #forgetOldest(): void {
    const since = this.#clock.monotonic() - this.#windowMs;
    for (let step = 0; step < 2; step++) {
      const [key, times] = this.#counts.entries().next().value ?? [];
      if (key === undefined || times === undefined) return;
      if (this.#counts.size > this.#maxKeys || times.at(-1)! <= since) this.#counts.delete(key);
    }
  }
}
