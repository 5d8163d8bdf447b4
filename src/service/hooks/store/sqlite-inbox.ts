import type { Connection } from "./sqlite-connection.js";
import { getSummary } from "./sqlite-runs.js";
import type { AddWakeResult, Answer, CreateRunResult, NewKey, NewRun, NewWake, StoredAnswer } from "./store.js";

export function findAnswer(db: Connection, scope: string, nowMark: number): StoredAnswer | null {
  const sql = "SELECT payload_hash, answer FROM answers WHERE scope = ? AND expires_mark > ?";
  const row = db.get(sql, scope, nowMark);
  if (row === undefined) return null;
  return { payloadHash: String(row.payload_hash), answer: JSON.parse(String(row.answer)) as Answer };
}

export function createRun(db: Connection, run: NewRun, key?: NewKey): CreateRunResult {
  const stored = key && findAnswer(db, key.scope, key.nowMark);
  if (stored) return { kind: "answered", stored };
  const wakes = db.all(
    `SELECT wakes.id, wakes.text FROM wakes JOIN sessions ON sessions.id = wakes.session
     WHERE sessions.key = ? AND wakes.run IS NULL ORDER BY wakes.id`,
    run.sessionKey,
  );
  const message = run.compose(wakes.map(({ text }) => JSON.parse(String(text)) as string));
  if (message === null) return { kind: "empty" };
  const session = sessionId(db, run.sessionKey);
  const { lastId: seq } = db.run(
    `INSERT INTO runs (id, session, origin, name, message, state, timeout_seconds, created_at)
     VALUES (?, ?, ?, ?, ?, 'queued', ?, ?)`,
    run.id,
    session,
    run.origin,
    run.name === null ? null : JSON.stringify(run.name),
    JSON.stringify(message),
    run.timeoutSeconds,
    run.createdAt,
  );
  if (wakes.length > 0) db.run("UPDATE wakes SET run = ? WHERE session = ? AND run IS NULL", seq, session);
  const { id: runId, sessionKey, createdAt } = run;
  if (key) saveAnswer(db, key, { run: { runId, sessionKey, createdAt } });
  return { kind: "created", run: getSummary(db, run.id)!, wakes: wakes.length };
}

export function addWake(db: Connection, wake: NewWake, key?: NewKey): AddWakeResult {
  const stored = key && findAnswer(db, key.scope, key.nowMark);
  if (stored) return { kind: "answered", stored };
  const before = countPending(db, wake.sessionKey);
  if (before >= wake.limit) return { kind: "full" };
  const chatId = sessionId(db, wake.sessionKey);
  const { lastId: eventId } = db.run(
    "INSERT INTO wakes (session, text) VALUES (?, ?)",
    chatId,
    JSON.stringify(wake.text),
  );
  const pending = before + 1;
  if (key) saveAnswer(db, key, { wake: { sessionKey: wake.sessionKey, chatId, eventId, pending } });
  return { kind: "queued", chatId, eventId, pending };
}

export function pendingSessions(db: Connection): string[] {
  const sql = `SELECT sessions.key FROM wakes JOIN sessions ON sessions.id = wakes.session
    WHERE wakes.run IS NULL GROUP BY wakes.session ORDER BY min(wakes.id)`;
  return db.all(sql).map(({ key }) => String(key));
}

function countPending(db: Connection, sessionKey: string): number {
  const row = db.get(
    `SELECT count(*) AS n FROM wakes JOIN sessions ON sessions.id = wakes.session
     WHERE sessions.key = ? AND wakes.run IS NULL`,
    sessionKey,
  );
  return Number(row?.n);
}

function sessionId(db: Connection, key: string): number {
  const row = db.get("SELECT id FROM sessions WHERE key = ?", key);
  return row === undefined ? db.run("INSERT INTO sessions (key) VALUES (?)", key).lastId : Number(row.id);
}

function saveAnswer(db: Connection, key: NewKey, answer: Answer): void {
  // an expired row of the same scope may still be there
  db.run(
    "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)",
    key.scope,
    key.payloadHash,
    JSON.stringify(answer),
    key.expiresMark,
  );
}
