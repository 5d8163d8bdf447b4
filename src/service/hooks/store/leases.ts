import type { RunRow } from "../run.js";
import type { Ending, EventBatch, EventLimits, NewEvent, NextAttempt, Store } from "./store.js";

/** A run that a worker holds until the end of its lease. */
export interface HeldRun {
  readonly run: RunRow;
  /** Fencing token: it grows with each start of the run, and a write with an older one is refused. */
  readonly token: number;
}

/** A worker's request for runs. */
export interface Claim {
  /** Id of the worker, unique to its process. */
  readonly worker: string;
  /** Most runs to claim. */
  readonly count: number;
  /** Length of the lease, by the store's clock. */
  readonly leaseMs: number;
  /** Wall clock ms. */
  readonly startedAt: number;
  /** First event of the start. */
  readonly event: NewEvent;
}

/** Treatment of runs whose worker was lost. */
export interface LostRunPolicy {
  /** Number of times that a run is queued again; beyond it, it ends. */
  readonly requeues: number;
  /** End of a run that is not queued again. */
  readonly ending: Omit<Ending, "from">;
  readonly limits: EventLimits;
  /** Most runs of one call. */
  readonly count: number;
}

/** Runs that were taken from lost workers. */
export interface LostRuns {
  /** Ids of the runs that are queued again. */
  readonly requeued: readonly string[];
  /** Ids of the runs that have ended. */
  readonly ended: readonly string[];
}

/**
 * Runs of one store shared among the workers of several processes. A run may be claimed when it is the oldest unfinished
 * one of its session: so a session's runs follow each other, whoever runs them.
 */
export interface Leases {
  /** Starts runs that may start, by priority, then oldest first; one whose delay has just ended at a later call. */
  claim(claim: Claim): Promise<HeldRun[]>;
  /** Extends the leases of a worker; returns the runs that it holds. It must give up all others. */
  renew(worker: string, leaseMs: number): Promise<{ readonly id: string; readonly token: number }[]>;
  /** Queues a run again that its worker gives up, which counts as no loss; false where the worker has lost it. */
  release(id: string, token: number): Promise<boolean>;
  /** Takes the runs whose lease has ended from their workers. */
  recoverLost(policy: LostRunPolicy): Promise<LostRuns>;
}

/** Numbers of the unfinished runs of a store at one moment. */
export interface RunCounts {
  readonly queued: number;
  readonly running: number;
  /** Sequence number of the newest stored run, 0 without any. */
  readonly newest: number;
  /** Time since which the oldest run that never started could, wall clock ms; null where none waits. */
  readonly oldestQueuedAt: number | null;
}

/**
 * A store that front ends and workers of several processes share. `token`, where it is given, must be that of the run's
 * last start.
 */
export interface SharedStore extends Store, Leases {
  append(id: string, batch: EventBatch, limits: EventLimits, token?: number): Promise<boolean>;
  retryRun(id: string, next: NextAttempt, batch: EventBatch, limits: EventLimits, token?: number): Promise<boolean>;
  endRun(id: string, ending: Ending, batch: EventBatch, limits: EventLimits, token?: number): Promise<boolean>;
  /**
   * Calls back when a run was created, changed or ended, in whatever process, with its id, and with that of its group at
   * its end; with null where any may have.
   * A hint, which may be lost with a connection: look by yourself as well, every second or so. Returns the end of it.
   */
  listen(listener: (id: string | null) => void): () => void;

  /** Joins the processes that share the store. Rejects with store_unavailable where one has it for itself. */
  join(): Promise<void>;
  /** Removes these runs as far as they have ended. */
  removeRuns(ids: readonly string[]): Promise<void>;
  /** Wall clock ms of the store, which is the same for all processes. */
  now(): Promise<number>;
  /** Counts at most `most` of each. */
  countRuns(most: number): Promise<RunCounts>;
  /** Position of a queued run among at most `most`, 1 for the next. */
  positionOf(id: string, most: number): Promise<number>;
  /** Ids of runs that could start at or before a time and never did, longest waiting first. */
  overdue(dueBefore: number, count: number): Promise<string[]>;
  /** Queued runs whose deadline is at or before a mark, earliest first. */
  pastDeadline(
    nowMark: number,
    count: number,
  ): Promise<readonly { readonly id: string; readonly deadlineMark: number }[]>;
  /** Texts that differ from earlier ones where a run or a group has changed, by id; none for one that is not stored. */
  revisions(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
}
