import type { RunRow, RunSummary } from "../run.js";
import type { Ending, EventLimits, NewEvent } from "./store.js";

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
  readonly ended: readonly RunSummary[];
}

/**
 * Runs of one store shared among the workers of several processes. A run may be claimed when it is the oldest unfinished
 * one of its session: so a session's runs follow each other, whoever runs them.
 */
export interface Leases {
  /** Starts runs that may start, by priority, then oldest first. */
  claim(claim: Claim): Promise<HeldRun[]>;
  /** Extends the leases of a worker; returns the runs that it holds. It must give up all others. */
  renew(worker: string, leaseMs: number): Promise<{ readonly id: string; readonly token: number }[]>;
  /** Takes the runs whose lease has ended from their workers. */
  recoverLost(policy: LostRunPolicy): Promise<LostRuns>;
}
