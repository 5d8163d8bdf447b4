/** Pending wakes of a session, or of all sessions together. */
export interface Backlog {
  readonly wakes: number;
  /** As `wakeBytes` counts. */
  readonly bytes: number;
}

/** The most that may be pending, one more wake included. */
export interface BacklogLimits {
  readonly session: Backlog;
  readonly service: Backlog;
}

/** Bytes that a wake's text counts for: as JSON in UTF-8, the form it is stored in. */
export const wakeBytes = (text: string): number => Buffer.byteLength(JSON.stringify(text));

/** Whose limit one more wake would pass; undefined: neither. */
export function passedLimit(
  bytes: number,
  pending: BacklogLimits,
  limits: BacklogLimits,
): keyof BacklogLimits | undefined {
  const isPassed = (whose: keyof BacklogLimits) =>
    pending[whose].wakes + 1 > limits[whose].wakes || pending[whose].bytes + bytes > limits[whose].bytes;
  return isPassed("session") ? "session" : isPassed("service") ? "service" : undefined;
}

/** Number of wakes from the front that fit `maxBytes`: at least one where there is one. */
export function countFitting(sizes: readonly number[], maxBytes: number): number {
  let total = 0;
  let count = 0;
  for (const size of sizes) {
    total += size;
    if (count > 0 && total > maxBytes) break;
    count += 1;
  }
  return count;
}
