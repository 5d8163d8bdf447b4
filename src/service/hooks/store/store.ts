import { createHash, randomUUID } from "node:crypto";
import type { RunGraph } from "../../agent/agent.js";
import type { Clock } from "../clock.js";
import {
  type EventSlice,
  type GroupSlice,
  PLAIN_TERMS,
  type RunFile,
  type RunFilter,
  type RunRow,
  type RunSummary,
  type RunTerms,
  type StartFields,
  type StoredEvent,
  type StoredStatus,
} from "../run.js";
import type { BacklogLimits, Room } from "./admission.js";
import type { Outbox } from "./deliveries.js";
import type { Ending, EventBatch, EventLimits, NextAttempt, QueueStore } from "./queue-store.js";

export interface NewRun {
  readonly id: string;
  readonly sessionKey: string;
  /** Fields that the row has as they are, but for the graph. */
  readonly start: StartFields;
  /** Graph of the start, or else the agent's; a store keeps each text once. Default: null. */
  readonly graph?: RunGraph | null;
  readonly terms: RunTerms;
  /** Default: the run is admitted. The runs of a group have the same one. */
  readonly room?: Room;
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

/** Facts of the response to the start of a run. */
export interface RunReply {
  readonly runId: string;
  readonly sessionKey: string;
  readonly createdAt: number;
  /** Steady ms (clock.ts), for expiry. */
  readonly createdMark: number;
  /** Steady ms before which the run does not start; absent: at once. */
  readonly dueMark?: number;
}

/** Facts of the response to the start of a group. */
export interface GroupReply extends Pick<RunReply, "createdAt" | "createdMark"> {
  readonly groupId: string;
  /** In the order of the request's items. */
  readonly runIds: readonly string[];
  /** Steady ms before which the last of them does not start; absent: at once. */
  readonly dueMark?: number;
}

/** Facts of the response to a wake that is queued. */
export interface WakeReply {
  readonly sessionKey: string;
  readonly chatId: number;
  readonly eventId: number;
  /** Pending wakes of the session, this one included. */
  readonly pending: number;
}

/** The reply to a request with an idempotency key. */
export type Reply = { readonly run: RunReply } | { readonly group: GroupReply } | { readonly wake: WakeReply };

/** The reply that a new run's key is stored with. */
export function replyOf({ id: runId, sessionKey, createdAt, createdMark, terms: { dueMark } }: NewRun) {
  return { run: { runId, sessionKey, createdAt, createdMark, ...(dueMark !== null && { dueMark }) } };
}

/** The reply that a new group's key is stored with. */
export function groupReplyOf({ id: groupId, runs }: NewGroup) {
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

/** The queue of the run's session or of the service has no room for it. */
export interface Full {
  readonly kind: "full";
  readonly scope: "session" | "service";
}

/** The reply of the key is stored. */
export interface Replayed {
  readonly kind: "replayed";
  readonly stored: StoredReply;
}

export type CreateRunResult =
  /** `seq`: the run's place in the order of creation. */
  | { readonly kind: "created"; readonly seq: number; readonly wakes: number }
  | { readonly kind: "empty" }
  | Replayed
  | Full;

/** `seqs`: in the order of the runs. */
export type CreateGroupResult = { readonly kind: "created"; readonly seqs: readonly number[] } | Replayed | Full;

export type AddWakeResult =
  | { readonly kind: "queued"; readonly chatId: number; readonly eventId: number; readonly pending: number }
  | Replayed
  | Full;

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
 * takes none. `token`, where it is given, must be that of the run's last start.
 */
export interface Store extends Outbox, QueueStore, Inbox, RunStore, EventStore {
  sweep(request: SweepRequest): Promise<SweepResult>;
  /** Fails where a run could not be started, and while an earlier failure persists. Writes little. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

/** Creation of runs, groups and wakes, and the ends of groups. */
export interface Inbox {
  findReply(scope: string, nowMark: number): Promise<StoredReply | null>;
  /** Writes the run and its key, and consumes the session's oldest pending wakes. */
  createRun(run: NewRun, key?: NewKey): Promise<CreateRunResult>;
  /** Writes all runs of a group, in order, and its key, or nothing. */
  createGroup(group: NewGroup, key?: NewKey): Promise<CreateGroupResult>;
  addWake(wake: NewWake, key?: NewKey): Promise<AddWakeResult>;
  /** Keys of the sessions with pending wakes, longest waiting first. */
  pendingSessions(): Promise<string[]>;
  /** At most `most` ends after a position; a group is kept as long as one of its runs. */
  readGroup(id: string, after: number, most: number): Promise<GroupSlice | null>;
  /** Id of the group of a run; null where it is in none. */
  groupOf(runId: string): Promise<string | null>;
}

/** Runs and their ways from state to state. */
export interface RunStore {
  getRun(id: string): Promise<RunRow | null>;
  /** As `getRun`, without reading the message. */
  getSummary(id: string): Promise<RunSummary | null>;
  getStatus(id: string, maxFiles: number): Promise<StoredStatus | null>;
  /** Newest first; below the sequence number `before`, unless it is null. */
  listRuns(before: number | null, limit: number, filter?: RunFilter): Promise<RunSummary[]>;
  /**
   * Moves a run from running to queued for another attempt: with its last events and that of the retry, without its
   * progress and files. Returns false where it is not running.
   */
  retryRun(id: string, next: NextAttempt, batch: EventBatch, limits: EventLimits, token?: number): Promise<boolean>;
  /** Adds events to a running run; false where it is not running. */
  append(id: string, batch: EventBatch, limits: EventLimits, token?: number): Promise<boolean>;
  /** Moves a run from a state in `from` to a terminal one, with its last events; false where it is in no such state. */
  endRun(id: string, ending: Ending, batch: EventBatch, limits: EventLimits, token?: number): Promise<boolean>;
}

/** Events and files of runs. */
export interface EventStore {
  /** Events after an id, at least one where there is one; an id above the newest counts as the newest. */
  readEvents(id: string, after: number, maxEvents: number, maxBytes: number): Promise<EventSlice | null>;
  /** Null where the run is unknown or has not ended. */
  terminalEvent(id: string): Promise<StoredEvent | null>;
  getFile(id: string, name: string): Promise<RunFile | null>;
  /** Forgets a file of an ended run; false where there is none. */
  removeFile(id: string, name: string): Promise<boolean>;
}

/** A store that the processes of several machines share: workers hold each run by a lease, which they renew. */
export interface SharedStore extends Store {
  /** Extends the leases of a worker; returns the runs that it holds. It must give up all others. */
  renew(worker: string, leaseMs: number): Promise<{ readonly id: string; readonly token: number }[]>;
  /**
   * Calls back with the id of a run that another process created, changed or ended, and at its end with that of its
   * group; with null if any may have changed. Hints may be lost with a connection: look every second or so as well.
   * Returns the function that ends the calls.
   */
  listen(listener: (id: string | null) => void): () => void;
  /** Removes these runs as far as they have ended. */
  removeRuns(ids: readonly string[]): Promise<void>;
  /** Wall clock ms of the store, which is the same for all processes. */
  now(): Promise<number>;
  /** Texts that differ from earlier ones where a run or a group has changed, by id; none for one that is not stored. */
  revisions(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

export const isShared = (store: Store): store is SharedStore => "renew" in store && "listen" in store;

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

/** Key under which a store keeps the text of a graph. */
export const graphHash = (text: string): string => createHash("sha256").update(text).digest("hex");

/** Reads the store's time, as of the middle of the request: processes that share a store share its time. */
export async function storeTime(store: Pick<SharedStore, "now">, clock: Clock): Promise<number> {
  const asked = clock.monotonic();
  const time = await store.now();
  return time + (clock.monotonic() - asked) / 2;
}

/** A run that a store creates, starts, ends and undoes, to check that it could. */
export function trialRun() {
  const id = randomUUID();
  const data = "trial";
  const run: NewRun = {
    id,
    sessionKey: id,
    start: { origin: "agent" },
    graph: { name: null, text: id },
    terms: { ...PLAIN_TERMS, timeoutSeconds: 1 },
    createdAt: 0,
    createdMark: 0,
    maxWakeBytes: 0,
    compose: () => data,
  };
  const terminal = { event: "done", data };
  const ending: Ending = { from: ["running"], to: "succeeded", finishedAt: 0, endedMark: 0, error: null, terminal };
  return {
    run,
    key: { scope: id, payloadHash: "", nowMark: 0, expiresMark: 0 },
    started: { event: "status", data },
    ending,
    limits: { events: 1, bytes: 1 },
  };
}
