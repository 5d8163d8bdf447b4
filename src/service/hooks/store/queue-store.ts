import type { RunFile, RunProgress, RunRow, RunState, RunSummary, TerminalState } from "../run.js";
import type { Receiver } from "./deliveries.js";

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
 * Place of a run in its session: by age, but prompts that their client put in front come first, the newest before all.
 */
export const turnOf = ({ origin, priority, seq }: Pick<RunSummary, "origin" | "priority" | "seq">): number =>
  origin === "comfy" && priority > 0 ? -seq : seq;

/**
 * The queue of the runs of a store. A session's runs start in the order of their creation, except that runs of origin
 * "comfy" with a priority above 0 come first, the newest before all; `perSession` of them at most at the same time. Those of
 * different sessions start by priority, then oldest first. Runs of batches wait as long as it takes.
 */
export interface QueueStore {
  /** Sets the number of runs of one session that run at the same time. Returns the newest mark of an ended run, else 0. */
  openQueue(perSession: number): Promise<number>;
  /** Whether no run is to start; false in a new store. */
  isPaused(): Promise<boolean>;
  setPaused(isPaused: boolean): Promise<void>;
  /** Starts all runs that may start, `count` at most. */
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

export interface NewEvent {
  readonly event: string;
  /** One line of JSON. */
  readonly data: string;
}

/** Events to add to a run, in order. */
export interface EventBatch {
  /**
   * Id of the event before the batch, where the writer knows it: what a shared store holds of the batch
   * already, from a call whose answer was lost, it does not add again.
   */
  readonly after?: number;
  /** Number of ids before `events` whose events were dropped: everything stored before them is trimmed as well. */
  readonly skip: number;
  readonly events: readonly NewEvent[];
  readonly files: readonly RunFile[];
  /** The newest progress, if any. */
  readonly progress?: RunProgress;
}

export const NO_EVENTS: EventBatch = { skip: 0, events: [], files: [] };

/** Limits of a run's stored events; the head is trimmed beyond them, the newest event never. */
export interface EventLimits {
  readonly events: number;
  /** Total of `data` in UTF-8. */
  readonly bytes: number;
}

/** The attempt that follows one that has failed. */
export interface NextAttempt {
  /** Steady ms before which it does not start. */
  readonly dueMark: number;
  /** Last event of the failed one. */
  readonly event: NewEvent;
}

export interface Ending {
  readonly from: readonly RunState[];
  readonly to: TerminalState;
  readonly finishedAt: number;
  readonly endedMark: number;
  readonly error: { readonly error: string; readonly code: string } | null;
  readonly terminal: NewEvent;
  /** Endpoints that are told of the end, as far as the run's session is theirs. */
  readonly receivers?: readonly Receiver[];
}
