import type { RunFile, RunProgress, RunState, TerminalState } from "../run.js";
import type { Receiver } from "./deliveries.js";

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
