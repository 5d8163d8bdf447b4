import { type Backlog, countFitting, exceededScope } from "../backlog.js";
import {
  type AddWakeResult,
  type CreateRunResult,
  type Full,
  type NewKey,
  type NewRun,
  type NewWake,
  type Reply,
  replyOf,
  type StoredReply,
} from "../store.js";
import type { Connection } from "./connection.js";
import { saveMessage } from "./graph-rows.js";

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
