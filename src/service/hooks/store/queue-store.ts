import type { RunRow } from "../run.js";
import type { Ending, EventLimits, NewEvent } from "./writes.js";

/** A run that a worker holds until the end of its lease. */
export interface HeldRun {
  readonly run: RunRow;
  /** Fencing token: it grows with each start of the run, and a write with an older one is refused. */
  readonly token: number;
  /** Steady ms since which the run could start. */
  readonly readyMark: number;
}

/** A worker's request for runs. */
export interface Claim {
  /** Id of the worker, unique to its process. */
  readonly worker: string;
  /** Most runs to claim. */
  readonly count: number;
  /** Whether it renders the runs of batches (`render --store`); they are left to others where it does not. */
  readonly takesBatches: boolean;
  /** Length of the lease, by the store's clock. */
  readonly leaseMs: number;
  /** Wall clock ms. */
  readonly startedAt: number;
  /** Steady ms: a run whose delay is not over yet, or whose deadline has passed, does not start. */
  readonly nowMark: number;
  /** First event of the start. */
  readonly event: NewEvent;
}

/** Treatment of runs whose worker was lost. */
export interface LostRunPolicy {
  /** Id of the worker that asks: a store of one process takes the runs of all others. */
  readonly worker: string;
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

/** Numbers of the unfinished runs of a store at one moment. */
export interface RunCounts {
  readonly queued: number;
  readonly running: number;
  /** Sequence number of the newest stored run, 0 without any. */
  readonly newest: number;
}

/** Next times at which a run changes although nothing happens, steady ms; null: none. */
export interface NextMarks {
  /** End of the first delay after a mark. */
  readonly due: number | null;
  readonly deadline: number | null;
  /** Time since which the oldest run that never started could. */
  readonly ready: number | null;
}

/**
 * The queue of the runs of a store. A session's runs start in the order of their creation, `perSession` of them at most
 * at the same time; those of different sessions by priority, then oldest first. Runs of batches wait as long as it takes.
 */
export interface QueueStore {
  /** Sets the number of runs of one session that run at the same time. Returns the newest mark of an ended run, else 0. */
  openQueue(perSession: number): Promise<number>;
  /** Starts runs that may start. */
  claim(claim: Claim): Promise<HeldRun[]>;
  /** Queues a run again that its worker gives up, which counts as no loss; false where the worker has lost it. */
  release(id: string, token: number): Promise<boolean>;
  /** Takes the runs of lost workers: those whose lease has ended. */
  recoverLost(policy: LostRunPolicy): Promise<LostRuns>;
  /** Counts at most `most` of each, without the queued ones of batches. */
  countRuns(most: number): Promise<RunCounts>;
  /** Position of a queued run among at most `most`, 1 for the next. */
  positionOf(id: string, most: number): Promise<number>;
  nextMarks(afterMark: number): Promise<NextMarks>;
  /** Ids of runs that could start at or before a mark and never did, longest waiting first. */
  overdue(readyBefore: number, count: number): Promise<string[]>;
  /** Queued runs whose deadline is at or before a mark, earliest first. */
  pastDeadline(
    nowMark: number,
    count: number,
  ): Promise<readonly { readonly id: string; readonly deadlineMark: number }[]>;
}
