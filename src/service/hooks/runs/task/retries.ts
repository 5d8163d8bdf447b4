import type { RunRow } from "../../run.js";
import type { EventBatch, NextAttempt } from "../../store/store.js";
import { isTransient, type Outcome } from "../outcome.js";
import type { RunContext } from "../run-context.js";
import { toJsonLine } from "../safe-json.js";

/** The attempt that follows one with an outcome; undefined where none does: it fails for good, or misses its deadline. */
export function nextAttempt(
  { retries, mark }: RunContext,
  { attempt, deadlineMark }: RunRow,
  { state, error }: Outcome,
  failure: { readonly error: unknown } | undefined,
): NextAttempt | undefined {
  if (state !== "failed" || failure === undefined || attempt >= retries.attempts) return undefined;
  if (!isTransient(failure.error, retries)) return undefined;
  const delayMs = retries.delayMs(attempt);
  const dueMark = mark() + delayMs;
  if (deadlineMark !== null && dueMark >= deadlineMark) return undefined;
  const data = { attempt: attempt + 1, delay_seconds: delayMs / 1000, ...error };
  return { dueMark, event: { event: "retry", data: toJsonLine(data) } };
}

/**
 * Queues a running run for its next attempt, after the last events of this one, and wakes its readers. Returns false where
 * it is not running any more. Fails with store_unavailable.
 */
export async function storeRetry(
  { store, eventLimits, bus }: RunContext,
  id: string,
  next: NextAttempt,
  lastEvents: EventBatch,
  token: number,
): Promise<boolean> {
  const isStored = await store.retryRun(id, next, lastEvents, eventLimits, token);
  bus.wake(id);
  return isStored;
}
