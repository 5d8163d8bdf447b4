import type { EventSlice, StoredEvent } from "../run.js";

/** Event ids of a run, as far as a slice needs them. */
export interface EventIds {
  readonly oldestEventId: number;
  readonly lastEventId: number;
  readonly hasEnded: boolean;
}

/** The id after which a slice begins. */
export const cursorOf = (after: number, { lastEventId }: EventIds): number => Math.min(Math.max(after, 0), lastEventId);

export function sliceOf(events: readonly StoredEvent[], cursor: number, ids: EventIds): EventSlice {
  const { oldestEventId, lastEventId, hasEnded } = ids;
  const reached = events.at(-1)?.id ?? cursor;
  return {
    events,
    oldestEventId,
    lastEventId,
    truncated: cursor + 1 < oldestEventId,
    end: hasEnded && reached === lastEventId,
  };
}
