import type { Clock } from "../../clock.js";
import type { Limits } from "../../hook-config.js";
import { HookError } from "../../hook-error.js";
import { RateWindow } from "./rate-window.js";

const START_WINDOW_MS = 10_000;

/** Limits of starts per token (or sender) and per session, shared by all endpoints that start runs. */
export interface StartRates {
  /** Counts one start of a token in each of these sessions, all different. Fails with rate_limited. */
  count(tokenId: string, sessionKeys: readonly string[]): void;
}

export function createStartRates(limits: Limits, clock: Clock): StartRates {
  const options = { windowMs: START_WINDOW_MS, clock };
  const perToken = new RateWindow({ ...options, limit: limits.starts_per_10s });
  const perSession = new RateWindow({ ...options, limit: limits.session_starts_per_10s });
  return {
    count(tokenId, sessionKeys) {
      const waitMs = Math.max(perToken.waitMs(tokenId), ...sessionKeys.map((key) => perSession.waitMs(key)));
      if (waitMs > 0) throw new HookError("rate_limited", undefined, { retryAfterSeconds: waitMs / 1000 });
      perToken.count(tokenId);
      for (const key of sessionKeys) perSession.count(key);
    },
  };
}
