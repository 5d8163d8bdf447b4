import type { RunGraph } from "../../../agent/agent.js";
import type { GroupSlice } from "../../run.js";
import { type Backlog, countFitting, exceededScope } from "../admission.js";
import {
  type AddWakeResult,
  type CreateGroupResult,
  type CreateRunResult,
  type Full,
  graphHash,
  groupReplyOf,
  type NewGroup,
  type NewKey,
  type NewRun,
  type NewWake,
  type Reply,
  replyOf,
  type StoredReply,
} from "../store.js";
import type { Connection } from "./connection.js";
import type { SqlRow } from "./driver.js";

export function findReply(db: Connection, scope: string, nowMark: number): StoredReply | null {
  const sql = "SELECT payload_hash, reply FROM replies WHERE scope = ? AND expires_mark > ?";
  const row = db.get(sql, scope, nowMark);
  if (row === undefined) return null;
  return { payloadHash: String(row.payload_hash), reply: JSON.parse(String(row.reply)) as Reply };
}

export function createRun(
  db: Connection,
  run: NewRun,
  refusal: () => Full | null = () => null,
  key?: NewKey,
): CreateRunResult {
  const stored = key && findReply(db, key.scope, key.nowMark);
  if (stored) return { kind: "replayed", stored };
  const full = refusal();
  if (full !== null) return full;
  const known = findSession(db, run.sessionKey);
  const wakes = known === undefined || known.wakes === 0 ? NO_WAKES : readWakes(db, known.id, run.maxWakeBytes);
  const message = run.compose(wakes.texts);
  if (message === null) return { kind: "empty" };
  const session = known?.id ?? addSession(db, run.sessionKey);
  const { start, terms } = run;
  const { lastId: seq } = db.run(
    `INSERT INTO runs (id, session, origin, name, state, priority, due_mark, deadline_mark, tags, timeout_seconds, created_at)
     VALUES (?, ?, ?, ?, 'queued', ?, ?, ?, ?, ?, ?)`,
    run.id,
    session,
    start.origin,
    start.name == null ? null : JSON.stringify(start.name),
    terms.priority,
    terms.dueMark,
    terms.deadlineMark,
    terms.tags.length === 0 ? null : JSON.stringify(terms.tags),
    terms.timeoutSeconds,
    run.createdAt,
  );
  saveMessage(db, seq, message, run);
  takeWakes(db, session, wakes);
  for (const tag of terms.tags) db.run("INSERT INTO tags VALUES (?, ?)", tag, seq);
  if (key) saveReply(db, key, replyOf(run));
  return { kind: "created", seq, wakes: wakes.texts.length };
}

export function addWake(db: Connection, wake: NewWake, key?: NewKey): AddWakeResult {
  const stored = key && findReply(db, key.scope, key.nowMark);
  if (stored) return { kind: "replayed", stored };
  const text = JSON.stringify(wake.text);
  const bytes = Buffer.byteLength(text);
  const session = findSession(db, wake.sessionKey);
  const before = { session: session ?? { wakes: 0, bytes: 0 }, service: backlog(db) };
  const scope = exceededScope(bytes, before, wake.limits);
  if (scope !== undefined) return { kind: "full", scope };
  const chatId = session?.id ?? addSession(db, wake.sessionKey);
  const { lastId: eventId } = db.run("INSERT INTO wakes (session, text, bytes) VALUES (?, ?, ?)", chatId, text, bytes);
  grow(db, chatId, { wakes: 1, bytes });
  const pending = before.session.wakes + 1;
  if (key) saveReply(db, key, { wake: { sessionKey: wake.sessionKey, chatId, eventId, pending } });
  return { kind: "queued", chatId, eventId, pending };
}

export function pendingSessions(db: Connection): string[] {
  const sql = `SELECT sessions.key FROM wakes JOIN sessions ON sessions.id = wakes.session
    GROUP BY wakes.session ORDER BY min(wakes.id)`;
  return db.all(sql).map(({ key }) => String(key));
}

/** Wakes at the front of a session's queue. */
interface Front {
  readonly texts: readonly string[];
  readonly lastId: number;
  readonly bytes: number;
}

const NO_WAKES: Front = { texts: [], lastId: 0, bytes: 0 };

/** Reads the sizes first: texts that do not fit are not read. */
function readWakes(db: Connection, session: number, maxBytes: number): Front {
  const sizes = db.all("SELECT id, bytes FROM wakes WHERE session = ? ORDER BY id", session);
  const bytes = sizes.map((row) => Number(row.bytes));
  const count = countFitting(bytes, maxBytes);
  if (count === 0) return NO_WAKES;
  const lastId = Number(sizes[count - 1]!.id);
  const texts = db
    .all("SELECT text FROM wakes WHERE session = ? AND id <= ? ORDER BY id", session, lastId)
    .map(({ text }) => JSON.parse(String(text)) as string);
  return { texts, lastId, bytes: bytes.slice(0, count).reduce((sum, size) => sum + size, 0) };
}

/** Deletes the wakes of a run, whose message holds their texts from now on. */
function takeWakes(db: Connection, session: number, { texts, lastId, bytes }: Front): void {
  if (texts.length === 0) return;
  db.run("DELETE FROM wakes WHERE session = ? AND id <= ?", session, lastId);
  grow(db, session, { wakes: -texts.length, bytes: -bytes });
}

/** Pending wakes of all sessions together. */
function backlog(db: Connection): Backlog {
  const row = db.get("SELECT wakes, bytes FROM backlog WHERE id = 1")!;
  return { wakes: Number(row.wakes), bytes: Number(row.bytes) };
}

/** Adds to the counts of the session and of all: a wake costs the same however many are pending. */
function grow(db: Connection, session: number, { wakes, bytes }: Backlog): void {
  const sql = "UPDATE sessions SET wakes = wakes + ?, wake_bytes = wake_bytes + ? WHERE id = ?";
  db.run(sql, wakes, bytes, session);
  db.run("UPDATE backlog SET wakes = wakes + ?, bytes = bytes + ? WHERE id = 1", wakes, bytes);
}

/** Id of a session, and its pending wakes. */
interface StoredSession extends Backlog {
  readonly id: number;
}

function findSession(db: Connection, key: string): StoredSession | undefined {
  const row = db.get("SELECT id, wakes, wake_bytes FROM sessions WHERE key = ?", key);
  return row && { id: Number(row.id), wakes: Number(row.wakes), bytes: Number(row.wake_bytes) };
}

const addSession = (db: Connection, key: string): number => db.run("INSERT INTO sessions (key) VALUES (?)", key).lastId;

export function saveReply(db: Connection, key: NewKey, reply: Reply): void {
  // an expired row of the same scope may still be there
  db.run(
    "INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?)",
    key.scope,
    key.payloadHash,
    JSON.stringify(reply),
    key.expiresMark,
  );
}

export function createGroup(
  db: Connection,
  group: NewGroup,
  refusal: () => Full | null,
  key?: NewKey,
): CreateGroupResult {
  const stored = key && findReply(db, key.scope, key.nowMark);
  if (stored) return { kind: "replayed", stored };
  const full = refusal();
  if (full !== null) return full;
  const { lastId } = db.run("INSERT INTO run_groups (id, size) VALUES (?, ?)", group.id, group.runs.length);
  const seqs = group.runs.map((run, index) => {
    const created = createRun(db, run);
    if (created.kind !== "created") throw new Error("a run of a group has no message");
    db.run("INSERT INTO group_runs (run_group, run_index, run) VALUES (?, ?, ?)", lastId, index, created.seq);
    return created.seq;
  });
  if (key) saveReply(db, key, groupReplyOf(group));
  return { kind: "created", seqs };
}

// decision 293
/** Counts the end of a run, of a group or not. */
export function countEnd(db: Connection, runId: string): void {
  const sql = "SELECT run_group, run FROM group_runs WHERE run = (SELECT seq FROM runs WHERE id = ?)";
  const member = db.get(sql, runId);
  if (member === undefined) return;
  db.run("UPDATE run_groups SET ended = ended + 1 WHERE seq = ?", member.run_group!);
  db.run(
    "UPDATE group_runs SET position = (SELECT ended FROM run_groups WHERE seq = run_group) WHERE run = ?",
    member.run!,
  );
}

export function readGroup(db: Connection, id: string, after: number, most: number): GroupSlice | null {
  const group = db.get("SELECT seq, size, ended FROM run_groups WHERE id = ?", id);
  if (group === undefined) return null;
  const oldest = db.get("SELECT min(position) AS oldest FROM group_runs WHERE run_group = ?", group.seq!)!.oldest;
  const ends = db.all(
    `SELECT group_runs.position, group_runs.run_index, runs.id, runs.ended_mark
     FROM group_runs CROSS JOIN runs ON runs.seq = group_runs.run
     WHERE run_group = ? AND position > ? ORDER BY position LIMIT ?`,
    group.seq!,
    after,
    most,
  );
  return {
    size: Number(group.size),
    ended: Number(group.ended),
    oldest: Number(oldest ?? Number(group.ended) + 1),
    ends: ends.map((row) => ({
      position: Number(row.position),
      index: Number(row.run_index),
      runId: String(row.id),
      endedMark: Number(row.ended_mark),
    })),
  };
}

export function groupOf(db: Connection, runId: string): string | null {
  const sql = `SELECT run_groups.id FROM runs JOIN group_runs ON group_runs.run = runs.seq
    JOIN run_groups ON run_groups.seq = group_runs.run_group WHERE runs.id = ?`;
  const row = db.get(sql, runId);
  return row === undefined ? null : String(row.id);
}

/** Takes a run out of its group, and deletes the group with its last run. Returns the number of deleted rows. */
export function leaveGroup(db: Connection, run: number): number {
  const group = db.get("SELECT run_group FROM group_runs WHERE run = ?", run)?.run_group;
  if (group === undefined) return 0;
  const { changes } = db.run("DELETE FROM group_runs WHERE run = ?", run);
  const sql = "DELETE FROM run_groups WHERE seq = ? AND NOT EXISTS (SELECT 1 FROM group_runs WHERE run_group = ?)";
  return changes + db.run(sql, group, group).changes;
}

/** Columns of a run's graph, trace and facts, and the join that has them. */
export const GRAPH = "messages.graph_name, graphs.text AS graph_text, messages.traceparent, messages.prompt_facts";
export const JOIN_GRAPHS = "LEFT JOIN graphs ON graphs.hash = messages.graph";

/** Stores the message, trace and facts of a run, and its graph where no other run has it. */
function saveMessage(
  db: Connection,
  run: number,
  message: string,
  { graph = null, start: { traceparent = null, promptFacts = null } }: NewRun,
): void {
  const hash = graph && graphHash(graph.text);
  if (graph !== null) db.run("INSERT OR IGNORE INTO graphs VALUES (?, ?)", hash, JSON.stringify(graph.text));
  const name = graph === null || graph.name === null ? null : JSON.stringify(graph.name);
  const values = [run, JSON.stringify(message), hash, name, traceparent, promptFacts];
  db.run("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?)", ...values);
}

export function toGraph({ graph_name: name, graph_text: text }: SqlRow): RunGraph | null {
  if (text === null) return null;
  const parse = (json: unknown) => JSON.parse(String(json)) as string;
  return { name: name === null ? null : parse(name), text: parse(text) };
}

/** Deletes the message of a run, and its graph where no other run has it. Returns the number of deleted rows. */
export function removeMessage(db: Connection, run: number): number {
  const graph = db.get("SELECT graph FROM messages WHERE run = ?", run)?.graph ?? null;
  const { changes } = db.run("DELETE FROM messages WHERE run = ?", run);
  if (graph === null) return changes;
  const sql = "DELETE FROM graphs WHERE hash = ? AND NOT EXISTS (SELECT 1 FROM messages WHERE graph = ?)";
  return changes + db.run(sql, graph, graph).changes;
}
