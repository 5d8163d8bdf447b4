/** Room for the runs of one call in the queue, as the process that creates them sees it. */
export interface Room {
  /** Most runs of one session at the same time. */
  readonly perSession: number;
  /** Most runs of one session that wait, beside those that can start. */
  readonly queuedPerSession: number;
  /** Number of runs more that may wait, in all sessions, beside those that are unclaimed. */
  readonly queued: number;
  /** Slots of this process that no run has. */
  readonly freeSlots: number;
  /** Number of runs that are about to take one of those. */
  readonly unclaimed: number;
  /** Whether other processes may run them too: then those that a session may run at once do not count as waiting. */
  readonly isShared: boolean;
}

/** Unfinished runs of a session. */
export interface SessionLoad {
  readonly queued: number;
  readonly running: number;
}

/** Admits runs of one call, one after the other: a run that can start at once takes a slot, any other waits. */
export class Admission {
  readonly #room: Room;
  #taken = 0;

  constructor(room: Room) {
    this.#room = room;
  }

  /** Number from which on more queued runs of a session make no difference. */
  get mostCounted(): number {
    return this.#room.queuedPerSession + this.#room.perSession;
  }

  /** Null where the run is admitted, else the queue that is full. */
  refusal({ queued, running }: SessionLoad, isDelayed: boolean): "session" | "service" | null {
    const room = this.#room;
    const freeSlots = room.isShared ? Number.POSITIVE_INFINITY : room.freeSlots;
    const freeInSession = Math.max(0, Math.min(freeSlots, room.perSession - running));
    const unclaimed = room.unclaimed + this.#taken;
    const startsAtOnce = !isDelayed && queued < freeInSession && unclaimed < room.freeSlots;
    if (!startsAtOnce) {
      if (queued - freeInSession >= room.queuedPerSession) return "session";
      if (Math.max(0, unclaimed - room.freeSlots) >= room.queued) return "service";
    }
    this.#taken += 1;
    return null;
  }
}

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
