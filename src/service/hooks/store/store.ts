import type {
  EventSlice,
  RunFile,
  RunFilter,
  RunOrigin,
  RunProgress,
  RunRow,
  RunState,
  RunSummary,
  StoredEvent,
  StoredStatus,
  TerminalState,
} from "../types.js";
import type { BacklogLimits } from "./backlog.js";

export interface NewRun {
  readonly id: string;
  readonly sessionKey: string;
  readonly origin: RunOrigin;
  readonly name: string | null;
  readonly timeoutSeconds: number;
  /** Wall clock ms. */
  readonly createdAt: number;
  /** Steady ms (clock.ts), for expiry. */
  readonly createdMark: number;
  /** Most bytes of pending wakes that the run takes; the oldest is always taken, what does not fit stays pending. */
  readonly maxWakeBytes: number;
  /** The run's message, given the texts of the pending wakes it takes; null: create nothing. */
  compose(pending: readonly string[]): string | null;
}

export interface NewWake {
  readonly sessionKey: string;
  readonly text: string;
  readonly limits: BacklogLimits;
}

/** What was answered under an idempotency key. */
export type Answer =
  | {
      readonly run: {
        readonly runId: string;
        readonly sessionKey: string;
        readonly createdAt: number;
        /** Absent in answers of older versions. */
        readonly createdMark?: number;
      };
    }
  | {
      readonly wake: {
        readonly sessionKey: string;
        readonly chatId: number;
        readonly eventId: number;
        readonly pending: number;
      };
    };

export interface StoredAnswer {
  readonly payloadHash: string;
  readonly answer: Answer;
}

/** Key row to write along with the run or wake it answers for. Marks are steady ms (clock.ts). */
export interface NewKey {
  readonly scope: string;
  readonly payloadHash: string;
  readonly nowMark: number;
  readonly expiresMark: number;
}

export type CreateRunResult =
  | { readonly kind: "created"; readonly run: RunSummary; readonly wakes: number }
  | { readonly kind: "answered"; readonly stored: StoredAnswer }
  | { readonly kind: "empty" };

export type AddWakeResult =
  | { readonly kind: "queued"; readonly chatId: number; readonly eventId: number; readonly pending: number }
  | { readonly kind: "answered"; readonly stored: StoredAnswer }
  | { readonly kind: "full"; readonly whose: keyof BacklogLimits };

export interface NewEvent {
  readonly event: string;
  /** One line of JSON. */
  readonly data: string;
}

/** Events to add to a run, in order. */
export interface EventBatch {
  /** Ids that were given out and dropped before `events`: everything stored so far is trimmed with them. */
  readonly skip: number;
  readonly events: readonly NewEvent[];
  readonly files: readonly RunFile[];
  /** The newest progress, where there is news. */
  readonly progress?: RunProgress;
}

/** Most that is kept of a run's events; the head is trimmed beyond it, the newest event never. */
export interface Keep {
  readonly events: number;
  /** UTF-8 bytes of all `data`. */
  readonly bytes: number;
}

export interface Ending {
  readonly from: readonly RunState[];
  readonly to: TerminalState;
  readonly finishedAt: number;
  readonly endedMark: number;
  readonly error: { readonly error: string; readonly code: string } | null;
  readonly terminal: NewEvent;
}

export interface LeftOver {
  readonly id: string;
  readonly seq: number;
  readonly sessionKey: string;
  readonly createdAt: number;
}

export interface SweepRequest {
  /** Runs that ended at or before this mark go. */
  readonly endedBefore: number;
  /** Ended runs beyond this number go, oldest first. */
  readonly keepRuns: number;
  /** Idempotency keys that expire at or before this mark go. */
  readonly nowMark: number;
  /** Stop after about this many deleted rows; `more` tells that another call is due. */
  readonly budget: number;
}

/**
 * What survives. Every method is one transaction: it happened whole when the promise resolves, and not at all when it
 * rejects, always with HookError store_unavailable. Work is done in the order of the calls. What a client was told
 * (create, wake, end) is on the disk when it resolves; events may trail a power loss, never a killed process.
 */
export interface Store {
  /** Runs that a former process left unfinished, in order of creation; the newest mark of an ended one, else 0. */
  leftOver(): Promise<{ queued: LeftOver[]; running: LeftOver[]; lastMark: number }>;

  findAnswer(scope: string, nowMark: number): Promise<StoredAnswer | null>;
  /** Run row, key row and the consumption of the session's oldest pending wakes together. */
  createRun(run: NewRun, key?: NewKey): Promise<CreateRunResult>;
  addWake(wake: NewWake, key?: NewKey): Promise<AddWakeResult>;
  /** Keys of the sessions with pending wakes, longest waiting first. */
  pendingSessions(): Promise<string[]>;

  getRun(id: string): Promise<RunRow | null>;
  /** As `getRun`, without a look at the message. */
  getSummary(id: string): Promise<RunSummary | null>;
  getStatus(id: string, maxFiles: number): Promise<StoredStatus | null>;
  /** Newest first, below `before` where given. */
  listRuns(before: number | null, limit: number, filter?: RunFilter): Promise<RunSummary[]>;
  /** queued to running, with an event; null where the run is not queued any more. */
  startRun(id: string, startedAt: number, event: NewEvent): Promise<RunRow | null>;
  /** running to queued; false where the run is not running. */
  requeueRun(id: string): Promise<boolean>;
  /** Adds events to a running run; false where it is not running. */
  append(id: string, batch: EventBatch, keep: Keep): Promise<boolean>;
  /** One of `from` to a terminal state, its last events and the terminal one; null where the run is in none of them. */
  endRun(id: string, ending: Ending, batch: EventBatch, keep: Keep): Promise<RunSummary | null>;

  /** Events after an id, at least one where there is one; an id above the newest counts as the newest. */
  readEvents(id: string, after: number, maxEvents: number, maxBytes: number): Promise<EventSlice | null>;
  /** Null where the run is unknown or has not ended. */
  terminalEvent(id: string): Promise<StoredEvent | null>;
  getFile(id: string, name: string): Promise<RunFile | null>;

  sweep(request: SweepRequest): Promise<{ removedRuns: number; endedRuns: number; more: boolean }>;
  /** Fails where a run could not be started, and while what failed before still fails. Writes little. */
  ping(): Promise<void>;
  close(): Promise<void>;
}
