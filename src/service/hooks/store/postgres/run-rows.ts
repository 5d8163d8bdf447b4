import type { Claim, Ending, EventBatch, EventLimits, HeldRun, NextAttempt } from "../queue-store.js";
import type { Store } from "../store.js";
import { GOES_IN_FRONT, MESSAGE, SUMMARY, toEvent, whereOf } from "../tables.js";
import type { Connection, Queryable, Transaction } from "./connection.js";
import { addDeliveries } from "./delivery-rows.js";
import { markOf, type SqlRow, type SqlValue, toStored, toStoredOrNull } from "./driver.js";
import { addEvents, EVENT_COLUMNS, firstOf, toFile, toRun, toStatus, toSummary, unstored } from "./event-rows.js";
import { countEnd } from "./group-rows.js";

const JOIN_SESSIONS = "JOIN lk.sessions ON sessions.id = runs.session";
const JOIN_MESSAGES = `JOIN lk.messages ON messages.run = runs.seq
  LEFT JOIN lk.graphs ON graphs.hash = messages.graph`;

/** The runs, and their states. `tell`: called with each run that has changed. */
export const runRows = (
  db: Connection,
  tell: (id: string) => void,
): Pick<Store, "getRun" | "getSummary" | "getStatus" | "listRuns" | "release"> => ({
  async getRun(id) {
    const sql = `SELECT ${SUMMARY}, ${MESSAGE} FROM lk.runs ${JOIN_SESSIONS} ${JOIN_MESSAGES} WHERE runs.id = $1`;
    return firstOf(await db.query(sql, toStored(id)), toRun);
  },
  async getSummary(id) {
    const sql = `SELECT ${SUMMARY} FROM lk.runs ${JOIN_SESSIONS} WHERE runs.id = $1`;
    return firstOf(await db.query(sql, toStored(id)), toSummary);
  },
  /** One statement: run, files and terminal event are of the same moment. */
  async getStatus(id, maxFiles) {
    const rows = await db.query(
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
    return firstOf(rows, (row) => {
      const files = JSON.parse(String(row.first_files ?? "[]")) as SqlRow[];
      const { event_id: eventId } = row;
      return toStatus(row, files.map(toFile), eventId === null ? null : toEvent({ ...row, id: eventId }));
    });
  },
  async listRuns(before, limit, { state, sessionKey, tag } = {}) {
    const seq = tag === undefined ? "runs.seq" : "tags.run";
    const { where, values } = whereOf<SqlValue>(
      [
        ["tags.tag = ?", tag],
        // hides batch runs: no client asked for them
        ["runs.origin <> ?", sessionKey === undefined ? "batch" : undefined],
        ["runs.session = (SELECT id FROM lk.sessions WHERE key = ?)", sessionKey && toStored(sessionKey)],
        ["runs.state = ?", state],
        [`${seq} < ?`, before === null ? undefined : Math.min(before, Number.MAX_SAFE_INTEGER)],
      ],
      markOf,
    );
    const joinTags = tag === undefined ? "" : "JOIN lk.tags ON tags.run = runs.seq";
    const sql = `SELECT ${SUMMARY} FROM lk.runs ${JOIN_SESSIONS} ${joinTags} ${where}
      ORDER BY ${seq} DESC LIMIT ${markOf(values.length + 1)}`;
    return (await db.query(sql, ...values, limit)).map(toSummary);
  },
  async release(id, token) {
    const sql = `UPDATE lk.runs SET ${QUEUED} WHERE id = $1 AND state = 'running' AND token = $2 RETURNING seq`;
    const isReleased = (await db.query(sql, toStored(id), token)).length > 0;
    if (isReleased) tell(id);
    return isReleased;
  },
});

/**
 * Starts runs: those that `which` names as SQL of their seqs. The first event trims nothing, unless a run runs again.
 * A caller reads its clock before the statement, and processes differ in their clocks: the stored time is at least that
 * of the end that the run waited for. `hasMore`: the next statement may start more, since it starts one of a session.
 */
export async function startRuns(
  db: Queryable,
  { which, alongside = NONE_PROMOTED, values = [], worker, leaseMs, startedAt, event }: Start,
  value: SqlValue,
): Promise<{ readonly held: HeldRun[]; readonly hasMore: boolean }> {
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
     SELECT (SELECT count(*) FROM promoted) AS promoted, ${SUMMARY}, runs.token, ${MESSAGE}, EXISTS (
       SELECT 1 FROM lk.runs AS later
       WHERE later.session = runs.session AND later.state = 'queued' AND later.active AND later.seq <> runs.seq
     ) AS is_followed
     FROM (SELECT 1) AS one LEFT JOIN (
       started AS runs ${JOIN_SESSIONS} ${JOIN_MESSAGES}
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
  return { held, hasMore: Number(rows[0]!.promoted) > 0 || started.some((row) => row.is_followed === true) };
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
 * Ends a run and lets the next one of its session be claimed. Returns the id of its group, if it has one. Locks the
 * session first, as a start does: otherwise a run that is created meanwhile could wait for one that has ended.
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
     WHERE seq = coalesce(
       (SELECT max(seq) FROM lk.runs WHERE session = $1 AND state = 'queued' AND NOT active AND ${GOES_IN_FRONT("runs")}),
       (SELECT min(seq) FROM lk.runs WHERE session = $1 AND state = 'queued' AND NOT active))
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
