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

// Rows of the SQL stores, whose tables have the same columns.

type Row = Readonly<Record<string, unknown>>;

/** Columns of a run without its message. */
export const SUMMARY = `runs.seq, runs.id, sessions.key AS session_key, runs.session, runs.origin, runs.name, runs.state,
  runs.priority, runs.due_mark, runs.deadline_mark, runs.tags, runs.attempt, runs.timeout_seconds, runs.created_at,
  runs.started_at, runs.finished_at, runs.oldest_event_id, runs.last_event_id, runs.error, runs.error_code`;
/** Columns of a run's message, graph, trace and facts. */
export const MESSAGE = `messages.message, messages.graph_name, graphs.text AS graph_text, messages.traceparent,
  messages.prompt_facts`;

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
