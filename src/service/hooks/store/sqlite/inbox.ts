import { type Backlog, countFitting, exceededScope } from "../backlog.js";
import {
  type AddWakeResult,
  type CreateRunResult,
  createdSummary,
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
  const sql = "SELECT payload_hash, answer FROM answers WHERE scope = ? AND expires_mark > ?";
  const row = db.get(sql, scope, nowMark);
  if (row === undefined) return null;
  return { payloadHash: String(row.payload_hash), reply: JSON.parse(String(row.answer)) as Reply };
}

export function createRun(db: Connection, run: NewRun, key?: NewKey): CreateRunResult {
  const stored = key && findReply(db, key.scope, key.nowMark);
  if (stored) return { kind: "replayed", stored };
  const wakes = readWakes(db, findSession(db, run.sessionKey), run.maxWakeBytes);
  const message = run.compose(wakes.texts);
  if (message === null) return { kind: "empty" };
  const session = sessionId(db, run.sessionKey);
  const { tags = [] } = run;
  const { lastId: seq } = db.run(
    `INSERT INTO runs (id, session, origin, name, state, priority, due_mark, deadline_mark, tags, timeout_seconds, created_at)
     VALUES (?, ?, ?, ?, 'queued', ?, ?, ?, ?, ?, ?)`,
    run.id,
    session,
    run.origin,
    run.name === null ? null : JSON.stringify(run.name),
    run.priority ?? 0,
    run.dueMark ?? null,
    run.deadlineMark ?? null,
    tags.length === 0 ? null : JSON.stringify(tags),
    run.timeoutSeconds,
    run.createdAt,
  );
  saveMessage(db, seq, message, run);
  consume(db, session, wakes, seq);
  for (const tag of tags) db.run("INSERT INTO tags VALUES (?, ?)", tag, seq);
  if (key) saveReply(db, key, replyOf(run));
  return { kind: "created", run: createdSummary(run, seq, session), wakes: wakes.texts.length };
}

export function addWake(db: Connection, wake: NewWake, key?: NewKey): AddWakeResult {
  const stored = key && findReply(db, key.scope, key.nowMark);
  if (stored) return { kind: "replayed", stored };
  const text = JSON.stringify(wake.text);
  const bytes = Buffer.byteLength(text);
  const session = backlogOf(db, findSession(db, wake.sessionKey));
  const scope = exceededScope(bytes, { session, service: backlogOf(db, ALL_SESSIONS) }, wake.limits);
  if (scope !== undefined) return { kind: "full", scope };
  const chatId = sessionId(db, wake.sessionKey);
  const { lastId: eventId } = db.run("INSERT INTO wakes (session, text, bytes) VALUES (?, ?, ?)", chatId, text, bytes);
  grow(db, chatId, { wakes: 1, bytes });
  const pending = session.wakes + 1;
  if (key) saveReply(db, key, { wake: { sessionKey: wake.sessionKey, chatId, eventId, pending } });
  return { kind: "queued", chatId, eventId, pending };
}

export function pendingSessions(db: Connection): string[] {
  const sql = `SELECT sessions.key FROM wakes JOIN sessions ON sessions.id = wakes.session
    WHERE wakes.run IS NULL GROUP BY wakes.session ORDER BY min(wakes.id)`;
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
function readWakes(db: Connection, session: number | undefined, maxBytes: number): Front {
  if (session === undefined) return NO_WAKES;
  const sizes = db.all("SELECT id, bytes FROM wakes WHERE session = ? AND run IS NULL ORDER BY id", session);
  const bytes = sizes.map((row) => Number(row.bytes));
  const count = countFitting(bytes, maxBytes);
  if (count === 0) return NO_WAKES;
  const lastId = Number(sizes[count - 1]!.id);
  const texts = db
    .all("SELECT text FROM wakes WHERE session = ? AND run IS NULL AND id <= ? ORDER BY id", session, lastId)
    .map(({ text }) => JSON.parse(String(text)) as string);
  return { texts, lastId, bytes: bytes.slice(0, count).reduce((sum, size) => sum + size, 0) };
}

/** Assigns the wakes to the run, whose message holds their texts from now on. */
function consume(db: Connection, session: number, { texts, lastId, bytes }: Front, run: number): void {
  if (texts.length === 0) return;
  const sql = `UPDATE wakes SET run = ?, text = '""' WHERE session = ? AND run IS NULL AND id <= ?`;
  db.run(sql, run, session, lastId);
  grow(db, session, { wakes: -texts.length, bytes: -bytes });
}

/** Id of the backlog of all sessions together; no session has it. */
const ALL_SESSIONS = 0;

function backlogOf(db: Connection, session: number | undefined): Backlog {
  const row =
    session === undefined ? undefined : db.get("SELECT wakes, bytes FROM backlogs WHERE session = ?", session);
  return { wakes: Number(row?.wakes ?? 0), bytes: Number(row?.bytes ?? 0) };
}

/** Adds to the counts of the session and of all: a wake costs the same however many are pending. */
function grow(db: Connection, session: number, { wakes, bytes }: Backlog): void {
  for (const id of [session, ALL_SESSIONS]) {
    db.run(
      `INSERT INTO backlogs VALUES (?, ?, ?)
       ON CONFLICT (session) DO UPDATE SET wakes = wakes + excluded.wakes, bytes = bytes + excluded.bytes`,
      id,
      wakes,
      bytes,
    );
  }
  db.run("DELETE FROM backlogs WHERE session = ? AND wakes = 0", session);
}

function findSession(db: Connection, key: string): number | undefined {
  const row = db.get("SELECT id FROM sessions WHERE key = ?", key);
  return row === undefined ? undefined : Number(row.id);
}

const sessionId = (db: Connection, key: string): number =>
  findSession(db, key) ?? db.run("INSERT INTO sessions (key) VALUES (?)", key).lastId;

export function saveReply(db: Connection, key: NewKey, reply: Reply): void {
  // an expired row of the same scope may still be there
  db.run(
    "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)",
    key.scope,
    key.payloadHash,
    JSON.stringify(reply),
    key.expiresMark,
  );
}
