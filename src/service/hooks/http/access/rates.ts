import type { Clock } from "../../clock.js";
import type { Limits } from "../../hook-config.js";
import { HookError } from "../../hook-error.js";

const START_WINDOW_MS = 10_000;

export type StartRates = ReturnType<typeof createStartRates>;

/** Limits of starts per token (or sender) and per session, shared by all endpoints that start runs. */
export function createStartRates(limits: Limits, clock: Clock) {
  const options = { windowMs: START_WINDOW_MS, clock };
  const perToken = new RateWindow({ ...options, limit: limits.starts_per_10s });
  const perSession = new RateWindow({ ...options, limit: limits.session_starts_per_10s });
  return {
    /** Counts one start of a token in each of these sessions, all different. Fails with rate_limited. */
    count(tokenId: string, sessionKeys: readonly string[]): void {
      const waitMs = Math.max(perToken.waitMs(tokenId), ...sessionKeys.map((key) => perSession.waitMs(key)));
      if (waitMs > 0) throw new HookError("rate_limited", undefined, { retryAfterSeconds: waitMs / 1000 });
      perToken.count(tokenId);
      for (const key of sessionKeys) perSession.count(key);
    },
  };
}

const WINDOW_MS = 60_000;

export type AuthBudget = ReturnType<typeof createAuthBudget>;

/** Refuses callers without a good token: 401, and 429 once a client has failed too often in a minute. */
export function createAuthBudget(options: { limit: number; clock: Clock }) {
  const failures = new RateWindow({ ...options, windowMs: WINDOW_MS });
  return {
    /** The refusal for one more failed attempt of this client; `sentence` replaces that of a 401. */
    refusal(client: string, sentence?: string): HookError {
      const waitMs = failures.waitMs(client);
      if (waitMs > 0) return new HookError("auth_rate_limited", undefined, { retryAfterSeconds: waitMs / 1000 });
      failures.count(client);
      return new HookError("unauthorized", sentence);
    },
  };
}

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
