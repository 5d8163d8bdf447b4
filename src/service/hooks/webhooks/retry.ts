const FIRST_MS = 5000;
const LONGEST_MS = 6 * 3600_000;
/** Part of a delay that is left to chance: receivers that come back are not met by all at once. */
const JITTER = 0.25;
/** Statuses with which Retry-After says when to come again. */
const BUSY: readonly number[] = [429, 503];

/**
 * Time to wait after an attempt: 5 s, then three times as long each time, 6 h at most. The age of the delivery bounds it
 * too, so that one that is sent again begins anew; `before`, the number of earlier attempts, does after an outage of the
 * service.
 */
export function backOffMs({ ageMs, before }: { ageMs: number; before: number }, random: () => number): number {
  let delay = FIRST_MS;
  for (let attempt = 0; attempt < before && delay < LONGEST_MS; attempt++) delay *= 3;
  delay = Math.min(delay, FIRST_MS + 2 * Math.max(0, ageMs), LONGEST_MS);
  return Math.round(delay * (1 - JITTER * random()));
}

/** Time that a receiver asks for, 6 h at most; 0 where it does not. */
export function retryAfterMs(status: number, header: string | undefined, nowMs: number): number {
  if (header === undefined || !BUSY.includes(status) || header.length > 64) return 0;
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - nowMs;
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(0, ms), LONGEST_MS);
}
