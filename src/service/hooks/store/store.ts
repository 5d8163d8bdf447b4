import type { RunGraph } from "../../agent.js";
import type {
  EventSlice,
  GroupSlice,
  RunFile,
  RunFilter,
  RunProgress,
  RunRow,
  RunState,
  RunSummary,
  RunTerms,
  StartFields,
  StoredEvent,
  StoredStatus,
  TerminalState,
} from "../run.js";
import type { BacklogLimits } from "./backlog.js";
import type { Outbox, Receiver } from "./deliveries.js";

export interface NewRun {
  readonly id: string;
  readonly sessionKey: string;
  /** Fields that the row has as they are, but for the graph. */
  readonly start: StartFields;
  /** Graph of the start, or else the agent's; a store keeps each text once. Default: null. */
  readonly graph?: RunGraph | null;
  readonly terms: RunTerms;
  /** Most runs of the session that wait behind the next one; only a shared store (leases.ts) counts them. */
  readonly mostQueued?: number;
  /** Wall clock ms. */
  readonly createdAt: number;
  /** Steady ms (clock.ts), for expiry. */
  readonly createdMark: number;
  /** Most bytes of pending wakes that the run takes; it always takes the oldest, and leaves the rest pending. */
  readonly maxWakeBytes: number;
  /** Returns the run's message, from the texts of the pending wakes it takes; null: create nothing. */
  compose(pending: readonly string[]): string | null;
}

/** Runs that one request creates, and one stream tells of. */
export interface NewGroup {
  readonly id: string;
  /** `compose` of none returns null. */
  readonly runs: readonly NewRun[];
}

export interface NewWake {
  readonly sessionKey: string;
  readonly text: string;
  readonly limits: BacklogLimits;
}

/** The reply to a request with an idempotency key. */
export type Reply =
  | {
      readonly run: {
        readonly runId: string;
        readonly sessionKey: string;
        readonly createdAt: number;
        readonly createdMark: number;
        /** Steady ms before which the run does not start; absent: at once. */
        readonly dueMark?: number;
      };
    }
  | {
      readonly group: {
        readonly groupId: string;
        /** In the order of the request's items. */
        readonly runIds: readonly string[];
        readonly createdAt: number;
        readonly createdMark: number;
        /** Steady ms before which the last of them does not start; absent: at once. */
        readonly dueMark?: number;
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

/** The reply that a new run's key is stored with. */
export function replyOf({ id: runId, sessionKey, createdAt, createdMark, terms: { dueMark } }: NewRun): Reply {
  return { run: { runId, sessionKey, createdAt, createdMark, ...(dueMark !== null && { dueMark }) } };
}

/** The reply that a new group's key is stored with. */
export function groupReplyOf({ id: groupId, runs }: NewGroup): Reply {
  const { createdAt, createdMark } = runs[0]!;
  const dueMark = Math.max(...runs.map(({ terms }) => terms.dueMark ?? 0));
  const runIds = runs.map(({ id }) => id);
  return { group: { groupId, runIds, createdAt, createdMark, ...(dueMark > 0 && { dueMark }) } };
}

export interface StoredReply {
  readonly payloadHash: string;
  readonly reply: Reply;
}

/** Key row to write along with its run or wake. Marks are steady ms (clock.ts). */
export interface NewKey {
  readonly scope: string;
  readonly payloadHash: string;
  readonly nowMark: number;
  readonly expiresMark: number;
}

export type CreateRunResult =
  /** `seq`: the run's place in the order of creation. */
  | { readonly kind: "created"; readonly seq: number; readonly wakes: number }
  | { readonly kind: "replayed"; readonly stored: StoredReply }
  | { readonly kind: "empty" }
  /** As many runs of the session wait as `mostQueued` allows. */
  | { readonly kind: "full" };

export type CreateGroupResult =
  /** In the order of the runs. */
  | { readonly kind: "created"; readonly seqs: readonly number[] }
  | { readonly kind: "replayed"; readonly stored: StoredReply }
  /** More runs of a session would wait than `mostQueued` allows. */
  | { readonly kind: "full" };

export type AddWakeResult =
  | { readonly kind: "queued"; readonly chatId: number; readonly eventId: number; readonly pending: number }
  | { readonly kind: "replayed"; readonly stored: StoredReply }
  | { readonly kind: "full"; readonly scope: keyof BacklogLimits };

export interface NewEvent {
  readonly event: string;
  /** One line of JSON. */
  readonly data: string;
}

/** Events to add to a run, in order. */
export interface EventBatch {
  /**
   * Id of the event before the batch, where the writer knows it: what a shared store (leases.ts) holds of the batch
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

export type LeftOver = Pick<
  RunSummary,
  "id" | "seq" | "sessionKey" | "priority" | "dueMark" | "deadlineMark" | "createdAt"
>;

export interface SweepRequest {
  /** Removes runs that ended at or before this mark, and deliveries to webhooks that did. */
  readonly endedBefore: number;
  /** Removes ended runs beyond this number, oldest first. */
  readonly maxEndedRuns: number;
  /** Removes ended deliveries beyond this number, about those that ended first. */
  readonly maxEndedDeliveries: number;
  /** Removes idempotency keys that expire at or before this mark. */
  readonly nowMark: number;
  /** Stops after about this many deleted rows; `more` tells that another call is due. */
  readonly budget: number;
}

export interface SweepResult {
  readonly removedRuns: number;
  readonly endedRuns: number;
  readonly more: boolean;
}

/**
 * The persistent state of a service. Every method is one transaction: complete when the promise resolves, undone when it
 * rejects, always with HookError store_unavailable. Work is done in the order of the calls. Whatever a client learns of
 * (create, wake, end) is on the disk when the promise resolves; a power loss may take the last events, a killed process
 * takes none.
 */
export interface Store extends Outbox {
  /** Unfinished runs of an earlier process, in order of creation; the newest mark of an ended run, else 0. */
  leftOver(): Promise<{ queued: LeftOver[]; running: LeftOver[]; lastMark: number }>;
  /** Whether no run is to start; false in a new store. */
  isPaused(): Promise<boolean>;
  setPaused(isPaused: boolean): Promise<void>;

  findReply(scope: string, nowMark: number): Promise<StoredReply | null>;
  /** Writes the run and its key, and consumes the session's oldest pending wakes. */
  createRun(run: NewRun, key?: NewKey): Promise<CreateRunResult>;
  /** Writes all runs of a group, in order, and its key, or nothing. */
  createGroup(group: NewGroup, key?: NewKey): Promise<CreateGroupResult>;
  addWake(wake: NewWake, key?: NewKey): Promise<AddWakeResult>;
  /** Keys of the sessions with pending wakes, longest waiting first. */
  pendingSessions(): Promise<string[]>;

  getRun(id: string): Promise<RunRow | null>;
  /** As `getRun`, without reading the message. */
  getSummary(id: string): Promise<RunSummary | null>;
  getStatus(id: string, maxFiles: number): Promise<StoredStatus | null>;
  /** Newest first; below the sequence number `before`, unless it is null. */
  listRuns(before: number | null, limit: number, filter?: RunFilter): Promise<RunSummary[]>;
  /** Moves a run from queued to running, with an event; null where it is not queued any more. */
  startRun(id: string, startedAt: number, event: NewEvent): Promise<RunRow | null>;
  /** Moves a run from running to queued; false where it is not running. */
  requeueRun(id: string): Promise<boolean>;
  /**
   * Moves a run from running to queued for another attempt: with its last events and that of the retry, without its
   * progress and files. Returns false where it is not running.
   */
  retryRun(id: string, next: NextAttempt, batch: EventBatch, limits: EventLimits): Promise<boolean>;
  /** Adds events to a running run; false where it is not running. */
  append(id: string, batch: EventBatch, limits: EventLimits): Promise<boolean>;
  /** Moves a run from a state in `from` to a terminal one, with its last events; false where it is in no such state. */
  endRun(id: string, ending: Ending, batch: EventBatch, limits: EventLimits): Promise<boolean>;

  /** Events after an id, at least one where there is one; an id above the newest counts as the newest. */
  readEvents(id: string, after: number, maxEvents: number, maxBytes: number): Promise<EventSlice | null>;
  /** At most `most` ends after a position; a group is kept as long as one of its runs. */
  readGroup(id: string, after: number, most: number): Promise<GroupSlice | null>;
  /** Id of the group of a run; null where it is in none. */
  groupOf(runId: string): Promise<string | null>;
  /** Null where the run is unknown or has not ended. */
  terminalEvent(id: string): Promise<StoredEvent | null>;
  getFile(id: string, name: string): Promise<RunFile | null>;
  /** Forgets a file of an ended run; false where there is none. */
  removeFile(id: string, name: string): Promise<boolean>;

  sweep(request: SweepRequest): Promise<SweepResult>;
  /** Fails where a run could not be started, and while an earlier failure persists. Writes little. */
  ping(): Promise<void>;
  close(): Promise<void>;
}
