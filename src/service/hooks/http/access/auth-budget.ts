import type { Clock } from "../../clock.js";
import { HookError } from "../../hook-error.js";
import { RateWindow } from "./rate-window.js";

const WINDOW_MS = 60_000;

/** Refuses callers without a good token: 401, and 429 once a client has failed too often in a minute. */
export interface AuthBudget {
  /** The refusal for one more failed attempt of this client; `sentence` replaces that of a 401. */
  refusal(client: string, sentence?: string): HookError;
}

export function createAuthBudget(options: { limit: number; clock: Clock }): AuthBudget {
  const failures = new RateWindow({ ...options, windowMs: WINDOW_MS });
  return {
    refusal(client, sentence) {
      const waitMs = failures.waitMs(client);
      if (waitMs > 0) return new HookError("auth_rate_limited", undefined, { retryAfterSeconds: waitMs / 1000 });
      failures.count(client);
      return new HookError("unauthorized", sentence);
    },
  };
}
