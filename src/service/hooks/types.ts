import type { IncomingMessage, ServerResponse } from "node:http";
import type { Config } from "../../render/config.js";
import type { Clock } from "./clock.js";
import type { Listener } from "./runs/event-bus.js";
import type { Store } from "./store/store.js";

export type Limits = Config["limits"];

/** An Express router by its shape: `app.use(router)` takes it, and no types of Express are needed for it. */
export type HookRouter = (req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void) => void;

// ---- agents: what an embedder writes ----

/** The run as its agent sees it. */
export interface AgentRun {
  readonly id: string;
  readonly sessionKey: string;
  /** Pending system events first, one line each, then the request's message. */
  readonly message: string;
  readonly name: string | null;
}

/** What a run's agent may do while it runs. */
export interface AgentContext {
  /** Aborts on cancel, time-out and shutdown. An agent that ignores it loses its slot all the same. */
  readonly signal: AbortSignal;
  /**
   * Adds an event to the run's stream. `data` becomes JSON: cycles and BigInt are written as text. Ignored after the
   * run's end. Throws TypeError for a reserved name (replay_meta, done, error, aborted) or one that is not 1 to 64 of
   * A-Z a-z 0-9 _ . - (the first a letter).
   */
  emit(event: string, data: unknown): void;
  /**
   * Lets readers of the run fetch a file. Returns its name among the run's files and the path of its route below where
   * the router is mounted. In events and in the response the path reaches each reader with the mount path in front.
   */
  addFile(file: { path: string; name?: string; contentType?: string }): { name: string; url: string };
}

/** The function that does the work of a run. A rejection fails the run, with the error's message. */
export type Agent = (run: AgentRun, context: AgentContext) => Promise<{ response: string }>;

// ---- runs ----

export const RUN_STATES = [
  "queued",
  "running",
  "succeeded",
  "failed",
  "cancelled",
  "timed_out",
  "interrupted",
  "expired",
] as const;
export type RunState = (typeof RUN_STATES)[number];
export type TerminalState = Exclude<RunState, "queued" | "running">;
export type RunOrigin = "agent" | "wake" | "heartbeat";

/** One run without its message. Times are wall clock ms. */
export interface RunSummary {
  readonly id: string;
  /** Order of creation; the cursor of lists. */
  readonly seq: number;
  readonly sessionKey: string;
  /** Row id of the session. */
  readonly chatId: number;
  readonly origin: RunOrigin;
  readonly name: string | null;
  readonly state: RunState;
  readonly timeoutSeconds: number;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  /** Smallest id still stored, or the id of the next event where none is stored. Above 1: the head was trimmed. */
  readonly oldestEventId: number;
  /** 0 before the first event. */
  readonly lastEventId: number;
  /** Of failed, timed_out, interrupted and expired runs. */
  readonly error: { readonly error: string; readonly code: string } | null;
}

export interface RunRow extends RunSummary {
  readonly message: string;
}

/** The newest progress of a run. */
export interface RunProgress {
  readonly value: number;
  readonly max: number;
  readonly node: string | null;
}

/** All that is stored of one run but its message and the events before its last. */
export interface StoredStatus extends RunSummary {
  readonly progress: RunProgress | null;
  /** The first ones, in the order they were reported. */
  readonly files: readonly RunFile[];
  /** All of them, those left out above included. */
  readonly fileCount: number;
  /** Null before the end. */
  readonly terminal: StoredEvent | null;
}

export interface RunStatus extends StoredStatus {
  /** Place among all queued runs, 1 for the next; null where the run is not queued. */
  readonly queuePosition: number | null;
}

/** Runs that a list shows: those to which all that is given applies. */
export interface RunFilter {
  readonly state?: RunState;
  readonly sessionKey?: string;
}

export interface StoredEvent {
  /** From 1, without gaps within a run. */
  readonly id: number;
  readonly event: string;
  /** One line of JSON, as it goes on the wire. */
  readonly data: string;
}

export interface RunFile {
  readonly name: string;
  readonly path: string;
  /** null: to be told from the name. */
  readonly contentType: string | null;
}

/** A bounded piece of a run's events. */
export interface EventSlice {
  readonly events: readonly StoredEvent[];
  readonly oldestEventId: number;
  readonly lastEventId: number;
  /** The head was trimmed past the reader: ids between the cursor and the first event here are gone. */
  readonly truncated: boolean;
  /** Nothing will follow: the run has ended and its terminal event is in this slice or before it. */
  readonly end: boolean;
}

// ---- requests ----

/** Where a stored answer may be replayed: same token and endpoint, same key. */
export interface Idempotency {
  readonly key: string;
  /** Digest of the token, never the token. */
  readonly tokenId: string;
  readonly endpoint: "agent" | "wake";
  /** Digest of the validated payload: another one under the same key is refused. */
  readonly payloadHash: string;
}

export interface StartRequest {
  readonly idempotency?: Idempotency;
  /** Called once where no stored answer exists, before the queue is looked at; throws to refuse (start rates). */
  readonly admit?: () => void;
  readonly origin: "agent" | "wake";
  readonly message: string;
  readonly name?: string;
  readonly sessionKey: string;
  /** Run time asked for; default `run_seconds`. */
  readonly timeoutSeconds?: number;
}

export interface WakeRequest {
  readonly idempotency?: Idempotency;
  readonly text: string;
  readonly sessionKey: string;
}

/** What the 200 of a start is made of; a replay returns the same values. */
export interface Started {
  readonly runId: string;
  readonly sessionKey: string;
  readonly createdAt: number;
  /** Steady ms, as `Runs.now`: for expiry. */
  readonly createdMark: number;
  readonly replayed: boolean;
}

/** What the 200 of a queued wake is made of; a replay returns the same values. */
export interface QueuedWake {
  readonly sessionKey: string;
  readonly chatId: number;
  readonly eventId: number;
  /** Pending events of the session, this one included. */
  readonly pending: number;
  readonly replayed: boolean;
}

export interface HeartbeatResult {
  readonly runs: readonly { readonly runId: string; readonly sessionKey: string; readonly events: number }[];
  /** Sessions whose queue was full: their events stay pending. */
  readonly skipped: readonly string[];
}

export interface RunStats {
  readonly queued: number;
  readonly running: number;
  /** Runs with at least one reader waiting for events. */
  readonly followed: number;
}

/** What the engine tells metrics and logs. Never called with a message, a token or a session key's text. */
export interface RunObserver {
  created?(run: { id: string; origin: RunOrigin }): void;
  started?(run: { id: string; waitedMs: number }): void;
  finished?(run: { id: string; state: TerminalState; ranMs: number | null }): void;
  /** Something failed behind the answers: the store, an agent's misuse. */
  fault?(what: string, error: unknown): void;
}

/** The run engine as HTTP and embedders see it. Everything fails with HookError. */
export interface Runs {
  /** Recovers what a former process left. Every other call waits for it; a failure is retried by the next call. */
  open(): Promise<void>;
  /** Fails: idempotency_mismatch, queue_full, shutting_down, store_unavailable. Committed when it resolves. */
  start(request: StartRequest): Promise<Started>;
  /** Queues a system event for the session's next run. Fails as start does. */
  queueWake(request: WakeRequest): Promise<QueuedWake>;
  /** Starts one run per session with pending events, or of the one session. */
  heartbeat(options?: { sessionKey?: string }): Promise<HeartbeatResult>;
  /** Fails with run_not_found. */
  get(runId: string): Promise<RunRow>;
  /** Without the message, which may be long. Fails with run_not_found. */
  status(runId: string): Promise<RunStatus>;
  /** Terminal event of an ended run, else null. Fails with run_not_found. */
  outcome(runId: string): Promise<StoredEvent | null>;
  /** Newest first. `limit` 1 to 1,000. Fails with invalid_request for a cursor that no list returned. */
  list(
    options: { cursor?: string; limit: number } & RunFilter,
  ): Promise<{ runs: RunSummary[]; nextCursor: string | null }>;
  /** Idempotent: an ended run is returned as it is. Fails with run_not_found. */
  cancel(runId: string): Promise<RunRow>;
  /** One bounded slice after an id, without waiting. Fails with run_not_found. */
  read(runId: string, after: number): Promise<EventSlice>;
  /**
   * Bounded slices after an id, live: waits for events, ends after the terminal event, on `signal` and on close.
   * Each step reads from the store, so a reader that does not pull costs nothing. Fails with run_not_found.
   */
  follow(runId: string, after: number, signal?: AbortSignal): AsyncGenerator<EventSlice, void, undefined>;
  /** Tells one reader when to read again; to be closed. Closed by the service's stop. */
  listen(runId: string): Listener;
  /** A file that the run reported. Fails with run_not_found or not_found. */
  file(runId: string, name: string): Promise<RunFile>;
  /** Wall time that does not jump, in ms: for expiry of signed URLs. */
  now(): number;
  /** Fails with store_unavailable where the store would fail a start, or still fails what it failed before. */
  ping(): Promise<void>;
  stats(): RunStats;
  readonly closing: boolean;
  /** Id of the run whose agent's code is being executed, its timers and callbacks included. */
  readonly current: string | undefined;
  /** Ends a run as failed whose agent threw where nobody awaits it; any but a running one stays as it is. */
  fail(runId: string, thrown: unknown): void;
  /**
   * Refuses new starts, lets running agents end for `drainSeconds` (default `drain_seconds`), then aborts them as
   * interrupted and closes the store. Queued runs stay queued. Safe to call twice.
   */
  close(drainSeconds?: number): Promise<void>;
}

export interface RunsOptions {
  readonly agent: Agent;
  readonly store: Store;
  readonly limits: Limits;
  readonly onRestart: "interrupt" | "requeue";
  readonly clock?: Clock;
  /** Seconds between heartbeats of all sessions; 0 or absent: none. */
  readonly heartbeatSeconds?: number;
  readonly observer?: RunObserver;
  /** Random UUID v4 of a new run. */
  readonly newId?: () => string;
}
