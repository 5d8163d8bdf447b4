import type { Limits } from "../../hook-config.js";
import type { Outcome } from "../outcome.js";
import type { WaitingRun } from "./waiting-runs.js";

/** A run that waits for a slot. */
export interface QueuedRun extends WaitingRun {
  /** Steady ms before which it does not start; null: at once. */
  readonly dueMark: number | null;
  /** Steady ms by which it ends; null: none. */
  readonly deadlineMark: number | null;
  /** Start of its wait, in monotonic ms. */
  readonly since: number;
}

/** Room in the queue for a run between its admission and its commit. */
export interface Reservation {
  release(): void;
}

/** The queue of a service: of its own process, or of the store that it shares (shared/shared-queue.ts). */
export interface Queue {
  readonly queued: number;
  readonly running: number;
  /** Time for which the oldest run has waited, in ms; 0 where none waits. */
  readonly waitedMs: number;
  /** Most runs of a session that may wait, where the store counts them. */
  readonly mostQueued?: number;
  /** Whether no run starts. */
  isPaused(): boolean | Promise<boolean>;
  /** Lets no run start, or lets them start again. Fails with store_unavailable. */
  setPaused(isPaused: boolean): Promise<void>;
  /** Position of a queued run, 1 for the next. */
  positionOf(id: string): number | Promise<number>;
  /** Reserves room for a run to be created. Fails with queue_full. */
  reserve(sessionKey: string, isDelayed: boolean): Reservation;
  /** Puts a committed run in the queue. */
  enqueue(run: QueuedRun): void;
  /** Ends a queued or running run, `outcome` being a queued one's; any other stays as it is. Fails with store_unavailable. */
  cancel(id: string, outcome: Outcome): Promise<void>;
  /** Ends a running run whose agent threw where nobody awaits it. */
  fail(id: string, thrown: unknown): void;
  /** Starts nothing more, lets running runs end for `seconds`, then interrupts them. */
  drain(seconds: number): Promise<void>;
}

export type QueueLimits = Pick<
  Limits,
  "running" | "running_per_session" | "queued" | "queued_per_session" | "queue_seconds"
>;

export const full = (scope: "session" | "service") => `the queue of this ${scope} is full, try again later`;
