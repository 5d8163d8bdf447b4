import type { RunGraph } from "../../agent/agent.js";
import type {
  RunFile,
  RunOrigin,
  RunProgress,
  RunRow,
  RunState,
  RunSummary,
  StoredEvent,
  StoredStatus,
  TerminalState,
} from "../run.js";
import type { Attempt, Delivery, DeliveryState } from "./deliveries.js";
import type { EventLimits } from "./queue-store.js";

/** Words of one kind of SQL. */
export interface Dialect {
  /** Before the names of tables. */
  readonly schema: string;
  /** Type of a key that the store counts up, and of one that is another table's. */
  readonly serial: string;
  readonly foreign: string;
  /** Behind a table that has no rows besides those of its key's index. */
  readonly keyed: string;
}

// A row's texts come last: to reach the columns behind a long one, SQLite reads every page of it. A mark is steady ms
// (clock.ts), and in the deliveries of PostgreSQL ms of the server.

/** The tables and indexes that both SQL stores have. */
export const commonTables = ({ schema, serial, foreign, keyed }: Dialect): string => `
  CREATE TABLE ${schema}sessions (
    id ${serial},
    key text NOT NULL UNIQUE,
    wakes bigint NOT NULL DEFAULT 0,           -- how many are pending, and their bytes
    wake_bytes bigint NOT NULL DEFAULT 0
  );
  CREATE TABLE ${schema}runs (
    seq ${serial},
    id text NOT NULL UNIQUE,
    session bigint NOT NULL,
    origin text NOT NULL,
    state text NOT NULL,
    priority integer NOT NULL DEFAULT 0,       -- higher ones first
    due_mark bigint,
    deadline_mark bigint,
    attempt integer NOT NULL DEFAULT 1,
    timeout_seconds double precision NOT NULL,
    created_at bigint NOT NULL,
    started_at bigint,
    finished_at bigint,
    ended_mark bigint,                         -- set exactly in terminal states
    oldest_event_id bigint NOT NULL DEFAULT 1,
    last_event_id bigint NOT NULL DEFAULT 0,
    event_bytes bigint NOT NULL DEFAULT 0,
    file_count bigint NOT NULL DEFAULT 0,
    error_code text,
    name text,
    tags text,                                 -- JSON; null: none
    error text,
    progress text                              -- JSON
  );
  CREATE INDEX runs_ended ON ${schema}runs (ended_mark, seq) WHERE ended_mark IS NOT NULL;
  CREATE TABLE ${schema}tags (
    tag text NOT NULL,
    run bigint NOT NULL,
    PRIMARY KEY (tag, run)
  )${keyed};
  CREATE INDEX tags_run ON ${schema}tags (run);
  CREATE TABLE ${schema}messages (             -- apart: lists do not read them, and events do not write them anew
    run ${foreign} PRIMARY KEY,
    message text NOT NULL,
    graph text,                                -- its hash
    graph_name text,
    traceparent text,
    prompt_facts text                          -- JSON
  );
  CREATE INDEX messages_graph ON ${schema}messages (graph) WHERE graph IS NOT NULL;
  CREATE TABLE ${schema}graphs (               -- each text once
    hash text PRIMARY KEY,
    text text NOT NULL
  )${keyed};
  CREATE TABLE ${schema}events (
    run bigint NOT NULL,
    id bigint NOT NULL,
    event text NOT NULL,
    data text NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (run, id)
  )${keyed};
  CREATE TABLE ${schema}files (
    run bigint NOT NULL,
    name text NOT NULL,
    path text NOT NULL,
    content_type text,
    place bigint NOT NULL,                     -- order of report
    PRIMARY KEY (run, name)
  )${keyed};
  CREATE TABLE ${schema}wakes (                -- the pending ones
    id ${serial},
    session bigint NOT NULL,
    text text NOT NULL,
    bytes bigint NOT NULL
  );
  CREATE TABLE ${schema}backlog (              -- one row: the pending wakes of all sessions
    id ${foreign} PRIMARY KEY CHECK (id = 1),
    wakes bigint NOT NULL,
    bytes bigint NOT NULL
  );
  INSERT INTO ${schema}backlog VALUES (1, 0, 0);
  CREATE TABLE ${schema}replies (
    scope text PRIMARY KEY,
    payload_hash text NOT NULL,
    reply text NOT NULL,                       -- JSON
    expires_mark bigint NOT NULL
  )${keyed};
  CREATE INDEX replies_expiry ON ${schema}replies (expires_mark);
  CREATE TABLE ${schema}run_groups (
    seq ${serial},
    id text NOT NULL UNIQUE,
    size integer NOT NULL,
    ended integer NOT NULL DEFAULT 0
  );
  CREATE TABLE ${schema}group_runs (
    run ${foreign} PRIMARY KEY,
    run_group bigint NOT NULL,
    run_index integer NOT NULL,                -- order of the request
    position integer                           -- order of ends; set exactly where the run has ended
  );
  CREATE INDEX group_runs_ends ON ${schema}group_runs (run_group, position);
  CREATE TABLE ${schema}deliveries (
    id ${serial},
    endpoint text NOT NULL,
    target text NOT NULL,
    run_id text NOT NULL,                      -- outlives its run
    session_key text NOT NULL,
    run_state text NOT NULL,
    finished_at bigint NOT NULL,
    ended_mark bigint NOT NULL,
    state text NOT NULL,
    attempts text NOT NULL DEFAULT '[]',       -- JSON
    token bigint NOT NULL DEFAULT 0,           -- number of claims
    due_mark bigint NOT NULL,
    since_mark bigint NOT NULL,
    settled_mark bigint                        -- set exactly where the state is not pending
  );
  CREATE INDEX deliveries_since ON ${schema}deliveries (since_mark) WHERE state = 'pending';
  CREATE INDEX deliveries_settled ON ${schema}deliveries (settled_mark) WHERE settled_mark IS NOT NULL;
  CREATE INDEX deliveries_run ON ${schema}deliveries (run_id);
  CREATE TABLE ${schema}gone (
    endpoint text NOT NULL,
    target text NOT NULL,
    PRIMARY KEY (endpoint, target)
  )${keyed};
`;

// Rows of the SQL stores, whose tables have the same columns.

type Row = Readonly<Record<string, unknown>>;

/** Columns of a run without its message. */
export const SUMMARY = `runs.seq, runs.id, sessions.key AS session_key, runs.session, runs.origin, runs.name, runs.state,
  runs.priority, runs.due_mark, runs.deadline_mark, runs.tags, runs.attempt, runs.timeout_seconds, runs.created_at,
  runs.started_at, runs.finished_at, runs.oldest_event_id, runs.last_event_id, runs.error, runs.error_code`;
/** Columns of a run's message, graph, trace and facts. */
export const MESSAGE = `messages.message, messages.graph_name, graphs.text AS graph_text, messages.traceparent,
  messages.prompt_facts`;

/** Whether `turnOf` puts a run in front, as SQL. */
export const GOES_IN_FRONT = (run: string) => `${run}.origin = 'comfy' AND ${run}.priority > 0`;
/** `turnOf` of a run, as SQL. */
export const TURN = (run: string) => `CASE WHEN ${GOES_IN_FRONT(run)} THEN -${run}.seq ELSE ${run}.seq END`;

export const numberOrNull = (value: unknown): number | null => (value === null ? null : Number(value));

export const toEvent = (row: Row): StoredEvent => ({
  id: Number(row.id),
  event: String(row.event),
  data: String(row.data),
});

/** Reads rows. `keyOf` reads the texts that a store compares or shows as they are, `textOf` all other texts of clients. */
export function rowReader(keyOf: (stored: unknown) => string, textOf: (stored: unknown) => string) {
  const orNull = (stored: unknown, read: (stored: unknown) => string) => (stored === null ? null : read(stored));
  const toSummary = (row: Row): RunSummary => ({
    id: keyOf(row.id),
    seq: Number(row.seq),
    sessionKey: keyOf(row.session_key),
    chatId: Number(row.session),
    origin: row.origin as RunOrigin,
    name: orNull(row.name, textOf),
    state: row.state as RunState,
    priority: Number(row.priority),
    dueMark: numberOrNull(row.due_mark),
    deadlineMark: numberOrNull(row.deadline_mark),
    tags: row.tags === null ? [] : (JSON.parse(String(row.tags)) as string[]),
    attempt: Number(row.attempt),
    timeoutSeconds: Number(row.timeout_seconds),
    createdAt: Number(row.created_at),
    startedAt: numberOrNull(row.started_at),
    finishedAt: numberOrNull(row.finished_at),
    oldestEventId: Number(row.oldest_event_id),
    lastEventId: Number(row.last_event_id),
    error: row.error === null ? null : { error: keyOf(row.error), code: String(row.error_code) },
  });
  const toGraph = ({ graph_name: name, graph_text: text }: Row): RunGraph | null =>
    text === null ? null : { name: orNull(name, textOf), text: textOf(text) };
  return {
    toSummary,
    toRun: (row: Row): RunRow => ({
      ...toSummary(row),
      message: textOf(row.message),
      graph: toGraph(row),
      traceparent: row.traceparent as string | null,
      promptFacts: row.prompt_facts as string | null,
    }),
    toStatus: (row: Row, files: RunFile[], terminal: StoredEvent | null): StoredStatus => ({
      ...toSummary(row),
      progress: row.progress === null ? null : (JSON.parse(String(row.progress)) as RunProgress),
      files,
      fileCount: Number(row.file_count),
      terminal,
    }),
    toFile: (row: Row): RunFile => ({
      name: keyOf(row.name),
      path: keyOf(row.path),
      contentType: orNull(row.content_type, keyOf),
    }),
    toDelivery: (row: Row): Delivery => ({
      id: Number(row.id),
      endpoint: keyOf(row.endpoint),
      target: String(row.target),
      runId: keyOf(row.run_id),
      sessionKey: keyOf(row.session_key),
      runState: row.run_state as TerminalState,
      finishedAt: Number(row.finished_at),
      endedMark: Number(row.ended_mark),
      state: row.state as DeliveryState,
      attempts: JSON.parse(String(row.attempts)) as Attempt[],
    }),
    toGroupEnd: (row: Row) => ({
      position: Number(row.position),
      index: Number(row.run_index),
      runId: keyOf(row.id),
      endedMark: Number(row.ended_mark),
    }),
  };
}

/** A WHERE clause of the conditions whose values are set, and these; `markOf`: mark in the place of a condition's `?`. */
export function whereOf<T>(
  conditions: readonly (readonly [sql: string, value: T | undefined])[],
  markOf = (_position: number) => "?",
): { where: string; values: T[] } {
  const set = conditions.filter((condition): condition is [string, T] => condition[1] !== undefined);
  const marked = set.map(([sql], index) => sql.replace("?", markOf(index + 1)));
  return {
    where: set.length === 0 ? "" : `WHERE ${marked.join(" AND ")}`,
    values: set.map(([, value]) => value),
  };
}

/** The stored events of a run: their ids, and the total of their data. */
export interface EventRange {
  readonly oldest: number;
  readonly last: number;
  readonly bytes: number;
}

/** Events of one look for those beyond the limits. */
export const TRIM_PAGE = 500;

export const exceeds = ({ oldest, last, bytes }: EventRange, limits: EventLimits): boolean =>
  oldest < last && (last - oldest + 1 > limits.events || bytes > limits.bytes);

/** The range without the first of its events that are beyond the limits, given some of these. */
export function trimmed(range: EventRange, limits: EventLimits, first: readonly Row[]): EventRange {
  let { oldest, last, bytes } = range;
  for (const row of first) {
    if (!exceeds({ oldest, last, bytes }, limits)) break;
    oldest = Number(row.id) + 1;
    bytes -= Number(row.bytes);
  }
  return { oldest, last, bytes };
}
