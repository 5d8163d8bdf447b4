import type { RunGraph } from "../../../agent/agent.js";
import { Admission, type Backlog, countFitting, exceededScope, type Room, wakeBytes } from "../admission.js";
import { turnOf } from "../queue-store.js";
import {
  type AddWakeResult,
  type CreateRunResult,
  graphHash,
  type NewKey,
  type NewRun,
  type NewWake,
  type Replayed,
  type Reply,
  replyOf,
  type StoredReply,
} from "../store.js";
import { TURN } from "../tables.js";
import type { Connection, Queryable, Transaction } from "./connection.js";
import { fromStored, type SqlRow, toStored, toStoredOrNull } from "./driver.js";
import { firstOf } from "./event-rows.js";

// Locks are taken in one order, so that no two transactions wait for each other: session, backlog, graph, reply, run, group.

/** Tries to lock a row that another transaction may delete or create meanwhile. */
export const LOCK_ATTEMPTS = 10;

export async function findReply(db: Queryable, scope: string, nowMark: number): Promise<StoredReply | null> {
  const sql = "SELECT payload_hash, reply FROM lk.replies WHERE scope = $1 AND expires_mark > $2";
  return firstOf(await db.query(sql, toStored(scope), nowMark), (row) => ({
    payloadHash: fromStored(row.payload_hash),
    reply: JSON.parse(String(row.reply)) as Reply,
  }));
}

/** Undoes a transaction that creates nothing: the reply of its key stands before the result. */
export async function createNothing<T>(tx: Transaction, key: NewKey | undefined, result: T): Promise<T | Replayed> {
  const stored = key && (await findReply(tx, key.scope, key.nowMark));
  return tx.undo(stored ? { kind: "replayed", stored } : result);
}

export async function createRun(tx: Transaction, run: NewRun, key?: NewKey): Promise<CreateRunResult> {
  const session = await lockSession(tx, run.sessionKey);
  const scope = run.room === undefined ? null : await fullScope(tx, session.id, run, run.room);
  if (scope !== null) return createNothing(tx, key, { kind: "full", scope });
  const wakes = session.wakes > 0 ? await takeWakes(tx, session.id, run.maxWakeBytes) : NO_WAKES;
  const message = run.compose(wakes.texts);
  if (message === null) return createNothing(tx, key, { kind: "empty" });
  if (wakes.texts.length > 0) await grow(tx, { wakes: -wakes.texts.length, bytes: -wakes.bytes });
  const { start, terms, graph = null } = run;
  const hash = graph && (await lockGraph(tx, graph));
  const earlier = key && (await saveReply(tx, key, replyOf(run)));
  if (earlier) return tx.undo({ kind: "replayed", stored: earlier });
  if (turnOf({ origin: start.origin, priority: terms.priority, seq: 1 }) < 0) await makeWay(tx, session.id);
  const [row] = await tx.query(
    `WITH run AS (
       INSERT INTO lk.runs (id, session, origin, name, state, timeout_seconds, created_at, priority, due_mark,
         deadline_mark, delayed, tags, active)
       VALUES ($1, $2, $3, $4, 'queued', $5, $6, $10, $11::bigint, $12, $11::bigint IS NOT NULL, $13,
         (SELECT count(*) FROM lk.runs AS others WHERE others.session = $2 AND others.active)
           < (SELECT per_session FROM lk.queue))
       RETURNING seq
     ), tagged AS (INSERT INTO lk.tags SELECT tag, seq FROM run, unnest($14::text[]) AS tag),
     message AS (INSERT INTO lk.messages SELECT seq, $7, $15, $16, $17, $18 FROM run),
     counted AS (UPDATE lk.sessions SET runs = runs + 1, wakes = wakes - $8, wake_bytes = wake_bytes - $9 WHERE id = $2)
     SELECT seq FROM run`,
    toStored(run.id),
    session.id,
    start.origin,
    toStoredOrNull(start.name ?? null),
    terms.timeoutSeconds,
    run.createdAt,
    toStored(message),
    wakes.texts.length,
    wakes.bytes,
    terms.priority,
    terms.dueMark,
    terms.deadlineMark,
    terms.tags.length === 0 ? null : JSON.stringify(terms.tags),
    terms.tags,
    hash,
    toStoredOrNull(graph?.name ?? null),
    start.traceparent ?? null,
    start.promptFacts ?? null,
  );
  return { kind: "created", seq: Number(row!.seq), wakes: wakes.texts.length };
}

/** Lets the waiting run of a session that would start last wait for one that goes in front, unless there is room for both. */
async function makeWay(tx: Transaction, session: number): Promise<void> {
  await tx.query(
    `UPDATE lk.runs SET active = false
     WHERE state = 'queued' AND seq = (
       SELECT seq FROM lk.runs WHERE session = $1 AND active AND state = 'queued' ORDER BY ${TURN("runs")} DESC LIMIT 1
     )
     AND (SELECT count(*) FROM lk.runs AS others WHERE others.session = $1 AND others.active)
       >= (SELECT per_session FROM lk.queue)`,
    session,
  );
}

export async function addWake(tx: Transaction, wake: NewWake, key?: NewKey): Promise<AddWakeResult> {
  const stored = key && (await findReply(tx, key.scope, key.nowMark));
  if (stored) return tx.undo({ kind: "replayed", stored });
  const bytes = wakeBytes(wake.text);
  const session = await lockSession(tx, wake.sessionKey);
  const [all] = await tx.query("SELECT wakes, bytes FROM lk.backlog WHERE id = 1 FOR UPDATE");
  const service = { wakes: Number(all!.wakes), bytes: Number(all!.bytes) };
  const scope = exceededScope(bytes, { session, service }, wake.limits);
  if (scope !== undefined) return tx.undo({ kind: "full", scope });
  const [row] = await tx.query(
    `WITH counted AS (UPDATE lk.sessions SET wakes = wakes + 1, wake_bytes = wake_bytes + $3 WHERE id = $1)
     INSERT INTO lk.wakes (session, text, bytes) VALUES ($1, $2, $3) RETURNING id`,
    session.id,
    toStored(wake.text),
    bytes,
  );
  await grow(tx, { wakes: 1, bytes });
  const queued = { chatId: session.id, eventId: Number(row!.id), pending: session.wakes + 1 };
  const earlier = key && (await saveReply(tx, key, { wake: { sessionKey: wake.sessionKey, ...queued } }));
  if (earlier) return tx.undo({ kind: "replayed", stored: earlier });
  return { kind: "queued", ...queued };
}

export async function pendingSessions(db: Connection): Promise<string[]> {
  const sql = `SELECT sessions.key FROM lk.sessions WHERE wakes > 0
    ORDER BY (SELECT min(wakes.id) FROM lk.wakes WHERE wakes.session = sessions.id)`;
  return (await db.query(sql)).map(({ key }) => fromStored(key));
}

interface LockedSession extends Backlog {
  readonly id: number;
}

// Locking the session's row numbers runs in commit order, and keeps a sweep from deleting the session under a new run.
/** Locks a session's row and creates it where it is absent: the runs and wakes of a session come one after the other. */
async function lockSession(tx: Transaction, sessionKey: string): Promise<LockedSession> {
  const key = toStored(sessionKey);
  for (let attempt = 0; attempt < LOCK_ATTEMPTS; attempt++) {
    const select = "SELECT id, wakes, wake_bytes FROM lk.sessions WHERE key = $1 FOR NO KEY UPDATE";
    const insert = "INSERT INTO lk.sessions (key) VALUES ($1) ON CONFLICT DO NOTHING RETURNING id, wakes, wake_bytes";
    const row = (await tx.query(select, key))[0] ?? (await tx.query(insert, key))[0];
    if (row !== undefined) return { id: Number(row.id), wakes: Number(row.wakes), bytes: Number(row.wake_bytes) };
  }
  throw new Error("a session's row could not be locked");
}

/** The queue that has no room for a run; null: it is admitted. */
async function fullScope(tx: Transaction, session: number, { terms }: NewRun, room: Room) {
  const admission = new Admission(room);
  const [load] = await tx.query(`SELECT ${LOAD("$1", "$2")}`, session, admission.mostCounted);
  return admission.refusal({ queued: Number(load!.queued), running: Number(load!.running) }, terms.dueMark !== null);
}

/** Columns of the load of a session: queued runs, at most `most`, and running ones. */
export const LOAD = (session: string, most: string) => `
  (SELECT count(*) FROM (SELECT 1 FROM lk.runs WHERE runs.session = ${session} AND state = 'queued' LIMIT ${most}) AS first) AS queued,
  (SELECT count(*) FROM lk.runs WHERE runs.session = ${session} AND active AND state = 'running') AS running`;

/** Wakes at the front of a session's queue. */
interface Front {
  readonly texts: readonly string[];
  readonly bytes: number;
}

export const NO_WAKES: Front = { texts: [], bytes: 0 };

/** Deletes the wakes that fit, and returns them. Reads the sizes first: texts that do not fit are not read. */
export async function takeWakes(tx: Transaction, session: number, maxBytes: number): Promise<Front> {
  const sizes = await tx.query("SELECT id, bytes FROM lk.wakes WHERE session = $1 ORDER BY id", session);
  const bytes = sizes.map((row) => Number(row.bytes));
  const count = countFitting(bytes, maxBytes);
  if (count === 0) return NO_WAKES;
  const sql = `WITH taken AS (DELETE FROM lk.wakes WHERE session = $1 AND id <= $2 RETURNING id, text)
    SELECT text FROM taken ORDER BY id`;
  const rows = await tx.query(sql, session, sizes[count - 1]!.id!);
  const total = bytes.slice(0, count).reduce((sum, size) => sum + size, 0);
  return { texts: rows.map(({ text }) => fromStored(text)), bytes: total };
}

/** Adds to the counts of all sessions together: a wake costs the same however many are pending. */
export async function grow(tx: Transaction, { wakes, bytes }: Backlog): Promise<void> {
  await tx.query("UPDATE lk.backlog SET wakes = wakes + $1, bytes = bytes + $2 WHERE id = 1", wakes, bytes);
}

/** Returns the reply that another transaction has saved for the key, else null: then this one is saved. */
export async function saveReply(tx: Transaction, key: NewKey, reply: Reply): Promise<StoredReply | null> {
  const saved = await tx.query(
    `INSERT INTO lk.replies VALUES ($1, $2, $3, $4)
     ON CONFLICT (scope) DO UPDATE
     SET payload_hash = excluded.payload_hash, reply = excluded.reply, expires_mark = excluded.expires_mark
     WHERE replies.expires_mark <= $5 RETURNING 1`,
    toStored(key.scope),
    toStored(key.payloadHash),
    JSON.stringify(reply),
    key.expiresMark,
    key.nowMark,
  );
  if (saved.length > 0) return null;
  const stored = await findReply(tx, key.scope, key.nowMark);
  if (stored === null) throw new Error("a stored reply expired while it was read");
  return stored;
}

// A start locks the row in share, a sweep skips locked rows: a counter would make all starts of a graph wait for each
// other.
/** Stores a graph that no run has yet, and keeps it from sweeps until the transaction ends. Returns its hash. */
export async function lockGraph(tx: Transaction, { text }: RunGraph): Promise<string> {
  const hash = graphHash(text);
  for (let attempt = 0; attempt < LOCK_ATTEMPTS; attempt++) {
    const [row] = await tx.query("SELECT 1 FROM lk.graphs WHERE hash = $1 FOR KEY SHARE", hash);
    if (row !== undefined) return hash;
    await tx.query("INSERT INTO lk.graphs VALUES ($1, $2) ON CONFLICT DO NOTHING", hash, toStored(text));
  }
  throw new Error("a graph's row could not be locked");
}

/** Deletes the messages of runs, and the graphs that no other run has; those of runs that start now stay. */
export async function removeMessages(tx: Transaction, seqs: readonly NonNullable<SqlRow[string]>[]): Promise<void> {
  const removed = await tx.query("DELETE FROM lk.messages WHERE run = ANY($1) RETURNING graph", seqs);
  const hashes = [...new Set(removed.flatMap(({ graph }) => (graph === null ? [] : [graph!])))];
  if (hashes.length === 0) return;
  const lock = "SELECT hash FROM lk.graphs WHERE hash = ANY($1) FOR UPDATE SKIP LOCKED";
  const locked = (await tx.query(lock, hashes)).map(({ hash }) => hash!);
  // another statement: it sees the runs that were committed before the lock
  const unused = "NOT EXISTS (SELECT 1 FROM lk.messages WHERE messages.graph = graphs.hash)";
  await tx.query(`DELETE FROM lk.graphs WHERE hash = ANY($1) AND ${unused}`, locked);
}
