/** Pending wakes of a session, or of all sessions together. */
export interface Backlog {
  readonly wakes: number;
  /** As `wakeBytes` counts. */
  readonly bytes: number;
}

/** Limits of the pending wakes. */
export interface BacklogLimits {
  readonly session: Backlog;
  readonly service: Backlog;
}

/** Size of a wake's text: as JSON in UTF-8, the form it is stored in. */
export const wakeBytes = (text: string): number => Buffer.byteLength(JSON.stringify(text));

/** Returns the scope whose limit one more wake would exceed; undefined: neither. */
export function exceededScope(
  bytes: number,
  pending: BacklogLimits,
  limits: BacklogLimits,
): keyof BacklogLimits | undefined {
  return (["session", "service"] as const).find(
    (scope) => pending[scope].wakes + 1 > limits[scope].wakes || pending[scope].bytes + bytes > limits[scope].bytes,
  );
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
