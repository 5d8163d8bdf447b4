import type { RunFilter, RunOrigin, RunProgress, RunRow, RunState, RunSummary, StoredStatus } from "../../run.js";
import type { Claim, HeldRun } from "../queue-store.js";
import type { Ending, EventBatch, EventLimits, NextAttempt } from "../store.js";
import type { Connection, Transaction } from "./connection.js";
import { addDeliveries } from "./delivery-rows.js";
import { fromStored, fromStoredOrNull, type SqlRow, type SqlValue, toStored, toStoredOrNull } from "./driver.js";
import { addEvents, EVENT_COLUMNS, toFile, unstored } from "./event-rows.js";
import { countEnd } from "./group-rows.js";
import { GRAPH, JOIN_GRAPHS, toGraph } from "./inbox.js";

const SUMMARY = `runs.seq, runs.id, sessions.key AS session_key, runs.session, runs.origin, runs.name, runs.state,
  runs.priority, runs.due_mark, runs.deadline_mark, runs.tags, runs.attempt, runs.timeout_seconds, runs.created_at,
  runs.started_at, runs.finished_at, runs.oldest_event_id, runs.last_event_id, runs.error, runs.error_code`;
const JOIN_SESSIONS = "JOIN lk.sessions ON sessions.id = runs.session";

export async function getRun(db: Connection, id: string): Promise<RunRow | null> {
  const sql = `SELECT ${SUMMARY}, messages.message, ${GRAPH} FROM lk.runs ${JOIN_SESSIONS}
    JOIN lk.messages ON messages.run = runs.seq ${JOIN_GRAPHS} WHERE runs.id = $1`;
  const [row] = await db.query(sql, toStored(id));
  return row === undefined ? null : toRun(row);
}

export async function getSummary(db: Pick<Connection, "query">, id: string): Promise<RunSummary | null> {
  const [row] = await db.query(`SELECT ${SUMMARY} FROM lk.runs ${JOIN_SESSIONS} WHERE runs.id = $1`, toStored(id));
  return row === undefined ? null : toSummary(row);
}

/** One statement: run, files and terminal event are of the same moment. */
export async function getStatus(db: Connection, id: string, maxFiles: number): Promise<StoredStatus | null> {
  const [row] = await db.query(
    `SELECT ${SUMMARY}, runs.progress, runs.file_count,
       events.id AS event_id, events.event, events.data, (
         SELECT json_agg(first) FROM (
           SELECT name, path, content_type FROM lk.files WHERE run = runs.seq ORDER BY place, name LIMIT $2
         ) AS first
       )::text AS first_files
     FROM lk.runs ${JOIN_SESSIONS}
     LEFT JOIN lk.events ON events.run = runs.seq AND events.id = runs.last_event_id AND runs.ended_mark IS NOT NULL
     WHERE runs.id = $1`,
    toStored(id),
    maxFiles,
  );
  if (row === undefined) return null;
  const files = JSON.parse(String(row.first_files ?? "[]")) as SqlRow[];
  return {
    ...toSummary(row),
    progress: row.progress === null ? null : (JSON.parse(String(row.progress)) as RunProgress),
    files: files.map(toFile),
    fileCount: Number(row.file_count),
    terminal:
      row.event_id === null ? null : { id: Number(row.event_id), event: String(row.event), data: String(row.data) },
  };
}

export async function listRuns(
  db: Connection,
  before: number | null,
  limit: number,
  { state, sessionKey, tag }: RunFilter = {},
): Promise<RunSummary[]> {
  const seq = tag === undefined ? "runs.seq" : "tags.run";
  const values: SqlValue[] = [limit];
  const conditions: string[] = [];
  const add = (condition: string, value: SqlValue | undefined) => {
    if (value !== undefined) conditions.push(condition.replace("?", `$${values.push(value)}`));
  };
  add("tags.tag = ?", tag);
  // those of a batch are many, and nobody's requests
  if (sessionKey === undefined) conditions.push("runs.origin <> 'batch'");
  add("runs.session = (SELECT id FROM lk.sessions WHERE key = ?)", sessionKey && toStored(sessionKey));
  add("runs.state = ?", state);
  add(`${seq} < ?`, before === null ? undefined : Math.min(before, Number.MAX_SAFE_INTEGER));
  const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
  const joinTags = tag === undefined ? "" : "JOIN lk.tags ON tags.run = runs.seq";
  const sql = `SELECT ${SUMMARY} FROM lk.runs ${JOIN_SESSIONS} ${joinTags} ${where} ORDER BY ${seq} DESC LIMIT $1`;
  return (await db.query(sql, ...values)).map(toSummary);
}

/**
 * Starts runs: those that `which` names as SQL of their seqs. The first event trims nothing, unless a run runs again.
 * A caller reads its clock before the statement, and processes differ in their clocks: the stored time is at least that
 * of the end that the run waited for.
 */
export async function startRuns(
  db: Pick<Connection, "query">,
  { which, alongside = NONE_PROMOTED, values = [], worker, leaseMs, startedAt, event }: Start,
  value: SqlValue,
): Promise<{ readonly held: HeldRun[]; readonly promoted: number }> {
  const rows = await db.query(
    `WITH ${alongside} chosen AS MATERIALIZED (${which}),
     started AS (
       UPDATE lk.runs SET state = 'running', delayed = false, token = token + 1,
         started_at = greatest($2::bigint, created_at, (
           SELECT finished_at FROM lk.runs AS earlier WHERE earlier.session = runs.session AND earlier.seq < runs.seq
           ORDER BY seq DESC LIMIT 1)),
         worker = $3, lease_until = clock_timestamp() + $4 * interval '1 ms',
         last_event_id = last_event_id + 1, event_bytes = event_bytes + $7::bigint
       FROM chosen WHERE runs.seq = chosen.seq AND runs.state = 'queued' RETURNING runs.*
     ), added AS (
       INSERT INTO lk.events SELECT seq, last_event_id, $5, $6, $7::bigint FROM started
     )
     SELECT (SELECT count(*) FROM promoted) AS promoted, ${SUMMARY}, runs.token, messages.message, ${GRAPH}
     FROM (SELECT 1) AS one LEFT JOIN (
       started AS runs ${JOIN_SESSIONS} JOIN lk.messages ON messages.run = runs.seq ${JOIN_GRAPHS}
     ) ON true ORDER BY runs.priority DESC, runs.seq`,
    value,
    startedAt,
    worker,
    leaseMs,
    event.event,
    event.data,
    Buffer.byteLength(event.data),
    ...values,
  );
  const started = rows.filter(({ seq }) => seq !== null);
  const held = started.map((row) => {
    const run = toRun(row);
    return { run, token: Number(row.token), readyMark: Math.max(run.createdAt, run.dueMark ?? 0) };
  });
  return { held, promoted: Number(rows[0]!.promoted) };
}

const NONE_PROMOTED = "promoted AS (SELECT 1 WHERE false),";

interface Start extends Pick<Claim, "worker" | "startedAt" | "event"> {
  /** A statement that returns column `seq` for the value $1. */
  readonly which: string;
  /** Part `promoted` of the WITH clause, of runs that the next statement may start, with a comma behind it. */
  readonly alongside?: string;
  /** Values of both from $8 on. */
  readonly values?: readonly SqlValue[];
  /** null: the lease has no end. */
  readonly leaseMs: number | null;
}

export async function releaseRun(db: Connection, id: string, token: number): Promise<boolean> {
  const sql = `UPDATE lk.runs SET ${QUEUED} WHERE id = $1 AND state = 'running' AND token = $2 RETURNING seq`;
  return (await db.query(sql, toStored(id), token)).length > 0;
}

export async function retryRun(
  tx: Transaction,
  id: string,
  { dueMark, event }: NextAttempt,
  batch: EventBatch,
  limits: EventLimits,
  token?: number,
): Promise<boolean> {
  const [row] = await tx.query(
    `UPDATE lk.runs SET ${QUEUED}, file_count = 0, due_mark = $3, delayed = true, attempt = attempt + 1
     WHERE id = $1 AND state = 'running' AND ($2::bigint IS NULL OR token = $2) RETURNING ${EVENT_COLUMNS}`,
    toStored(id),
    token ?? null,
    dueMark,
  );
  if (row === undefined) return false;
  await tx.query("DELETE FROM lk.files WHERE run = $1", row.seq!);
  const rest = unstored(batch, Number(row.last_event_id));
  await addEvents(tx, row, { ...rest, files: [], progress: undefined, events: [...rest.events, event] }, limits);
  return true;
}

/** Sets what a run that is queued again has lost. */
export const QUEUED = "state = 'queued', started_at = NULL, progress = NULL, worker = NULL, lease_until = NULL";

/**
 * Ends a run and lets the next one of its session be claimed. Returns the id of its group, if it has one. The session is locked first, as by a start: otherwise a run
 * that is created meanwhile could wait for one that has ended.
 */
export async function endRun(
  tx: Transaction,
  id: string,
  ending: Ending,
  batch: EventBatch,
  limits: EventLimits,
  token?: number,
): Promise<{ groupId: string | null } | null> {
  const key = toStored(id);
  await lockSessionOf(tx, key);
  const { to, finishedAt, endedMark, error } = ending;
  const [row] = await tx.query(
    `UPDATE lk.runs SET state = $2, finished_at = greatest($3::bigint, started_at), ended_mark = $4, error = $5,
       error_code = $6, active = false, lease_until = NULL
     FROM lk.sessions
     WHERE sessions.id = runs.session AND runs.id = $1 AND state = ANY($7) AND ($8::bigint IS NULL OR token = $8)
     RETURNING ${SUMMARY}, ${EVENT_COLUMNS},
       (SELECT run_group FROM lk.group_runs WHERE group_runs.run = runs.seq) AS run_group`,
    key,
    to,
    finishedAt,
    endedMark,
    toStoredOrNull(error?.error ?? null),
    error?.code ?? null,
    ending.from,
    token ?? null,
  );
  if (row === undefined) return null;
  const rest = unstored(batch, Number(row.last_event_id));
  await addEvents(tx, row, { ...rest, events: [...rest.events, ending.terminal] }, limits);
  await tx.query(
    `UPDATE lk.runs SET active = true
     WHERE seq = (SELECT min(seq) FROM lk.runs WHERE session = $1 AND state = 'queued' AND NOT active)
     AND (SELECT count(*) FROM lk.runs AS others WHERE others.session = $1 AND others.active)
       < (SELECT per_session FROM lk.queue)`,
    row.session!,
  );
  await addDeliveries(tx, toSummary(row), ending);
  // last: the group's other ends wait for this commit
  const groupId = row.run_group === null ? null : await countEnd(tx, Number(row.run_group), Number(row.seq));
  return { groupId };
}

/** Locks the session of a run, given its stored id. */
export async function lockSessionOf(tx: Transaction, id: string): Promise<void> {
  const session = "SELECT session FROM lk.runs WHERE runs.id = $1";
  await tx.query(`SELECT 1 FROM lk.sessions WHERE id = (${session}) FOR NO KEY UPDATE`, id);
}

const toRun = (row: SqlRow): RunRow => ({
  ...toSummary(row),
  message: fromStored(row.message),
  graph: toGraph(row),
  traceparent: row.traceparent as string | null,
  promptFacts: row.prompt_facts as string | null,
});

function toSummary(row: SqlRow): RunSummary {
  return {
    id: fromStored(row.id),
    seq: Number(row.seq),
    sessionKey: fromStored(row.session_key),
    chatId: Number(row.session),
    origin: row.origin as RunOrigin,
    name: fromStoredOrNull(row.name),
    state: row.state as RunState,
    priority: Number(row.priority),
    dueMark: orNull(row.due_mark),
    deadlineMark: orNull(row.deadline_mark),
    tags: row.tags === null ? [] : (JSON.parse(String(row.tags)) as string[]),
    attempt: Number(row.attempt),
    timeoutSeconds: Number(row.timeout_seconds),
    createdAt: Number(row.created_at),
    startedAt: orNull(row.started_at),
    finishedAt: orNull(row.finished_at),
    oldestEventId: Number(row.oldest_event_id),
    lastEventId: Number(row.last_event_id),
    error: row.error === null ? null : { error: fromStored(row.error), code: String(row.error_code) },
  };
}

const orNull = (value: unknown) => (value === null ? null : Number(value));
