import type { RunRow } from "#src/service/hooks/run.js";
import type { Claim, HeldRun, LostRunPolicy, NewEvent } from "#src/service/hooks/store/queue-store.js";
import type { Store } from "#src/service/hooks/store/store.js";

export const STARTED: NewEvent = { event: "status", data: '{"state":"running"}' };

/** A claim of every run that may start, by a worker "w". */
export const claimOf = (extra: Partial<Claim> = {}): Claim => ({
  worker: "w",
  count: 100,
  takesBatches: true,
  leaseMs: 60_000,
  startedAt: 2000,
  nowMark: Number.MAX_SAFE_INTEGER,
  event: STARTED,
  ...extra,
});

/** Starts the oldest run that may start, which is that with the id; null if none may. */
export async function startNext(store: Store, id: string, startedAt = 2000, event = STARTED): Promise<RunRow | null> {
  const [held] = await store.claim(claimOf({ count: 1, startedAt, event }));
  if (held !== undefined && held.run.id !== id) throw new Error(`the run ${held.run.id} is before ${id}`);
  return held?.run ?? null;
}

export const idsOf = (held: readonly HeldRun[]): string[] => held.map(({ run }) => run.id);

/** Takes the lost runs of every worker but "next", as one with this fate for them. */
export const lostRuns = (requeues: number): LostRunPolicy => ({
  worker: "next",
  requeues,
  limits: { events: 100, bytes: 1e6 },
  count: 100,
  ending: {
    to: "interrupted",
    finishedAt: 3000,
    endedMark: 3000,
    error: null,
    terminal: { event: "aborted", data: "{}" },
  },
});
