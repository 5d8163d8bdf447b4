import { type Backlog, countFitting, exceededScope, wakeBytes } from "../admission.js";
import { type LocalQueue, queuedRun } from "../local-queue.js";
import {
  graphHash,
  groupReplyOf,
  type Inbox,
  type NewKey,
  type NewRun,
  type Replayed,
  type Reply,
  replyOf,
  type StoredReply,
} from "../store.js";
import type { Connection } from "./connection.js";
import { orNull, toGroupEnd } from "./event-rows.js";

/** Creation of runs, wakes and groups, and the ends of groups. */
export const inboxRows = (db: Connection, queue: LocalQueue): Inbox => ({
  findReply: async (scope, nowMark) => db.read(() => findReply(db, scope, nowMark)),
  async createRun(run, key) {
    const create = () => queue.refusal([run]) ?? createRun(db, run, key);
    const result = db.write("durable", () => once(db, key, create));
    if (result.kind === "created") queue.add(queuedRun(run, result.seq));
    return result;
  },
  async createGroup({ id, runs }, key) {
    const create = () => {
      const full = queue.refusal(runs);
      if (full !== null) return full;
      const { lastId } = db.run("INSERT INTO run_groups (id, size) VALUES (?, ?)", id, runs.length);
      const seqs = runs.map((run, index) => {
        const created = createRun(db, run);
        if (created.kind === "empty") throw new Error("a run of a group has no message");
        db.run("INSERT INTO group_runs (run_group, run_index, run) VALUES (?, ?, ?)", lastId, index, created.seq);
        return created.seq;
      });
      if (key) saveReply(db, key, groupReplyOf({ id, runs }));
      return { kind: "created", seqs } as const;
    };
    const result = db.write("durable", () => once(db, key, create));
    if (result.kind === "created") {
      for (const [index, run] of runs.entries()) queue.add(queuedRun(run, result.seqs[index]!));
    }
    return result;
  },
  async addWake({ sessionKey, text, limits }, key) {
    const bytes = wakeBytes(text);
    const add = () => {
      const session = findSession(db, sessionKey);
      const before = { session: session ?? { wakes: 0, bytes: 0 }, service: backlog(db) };
      const scope = exceededScope(bytes, before, limits);
      if (scope !== undefined) return { kind: "full", scope } as const;
      const chatId = session?.id ?? addSession(db, sessionKey);
      const sql = "INSERT INTO wakes (session, text, bytes) VALUES (?, ?, ?)";
      const { lastId: eventId } = db.run(sql, chatId, JSON.stringify(text), bytes);
      grow(db, chatId, { wakes: 1, bytes });
      const queued = { chatId, eventId, pending: before.session.wakes + 1 };
      if (key) saveReply(db, key, { wake: { sessionKey, ...queued } });
      return { kind: "queued", ...queued } as const;
    };
    return db.write("durable", () => once(db, key, add));
  },
  async pendingSessions() {
    const sql = `SELECT sessions.key FROM wakes JOIN sessions ON sessions.id = wakes.session
      GROUP BY wakes.session ORDER BY min(wakes.id)`;
    return db.read(() => db.all(sql)).map(({ key }) => String(key));
  },
  readGroup: async (id, after, most) =>
    db.read(() => {
      const group = db.get("SELECT seq, size, ended FROM run_groups WHERE id = ?", id);
      if (group === undefined) return null;
      const oldest = db.get("SELECT min(position) AS oldest FROM group_runs WHERE run_group = ?", group.seq!)!.oldest;
      const sql = `SELECT group_runs.position, group_runs.run_index, runs.id, runs.ended_mark
        FROM group_runs CROSS JOIN runs ON runs.seq = group_runs.run
        WHERE run_group = ? AND position > ? ORDER BY position LIMIT ?`;
      const ends = db.all(sql, group.seq!, after, most).map(toGroupEnd);
      const ended = Number(group.ended);
      return { size: Number(group.size), ended, oldest: Number(oldest ?? ended + 1), ends };
    }),
  async groupOf(runId) {
    const sql = `SELECT run_groups.id FROM runs JOIN group_runs ON group_runs.run = runs.seq
      JOIN run_groups ON run_groups.seq = group_runs.run_group WHERE runs.id = ?`;
    return orNull(
      db.read(() => db.get(sql, runId)),
      ({ id }) => String(id),
    );
  },
});

/** Returns what `create` does, unless the reply of the key is stored. */
function once<T>(db: Connection, key: NewKey | undefined, create: () => T): T | Replayed {
  const stored = key && findReply(db, key.scope, key.nowMark);
  return stored ? { kind: "replayed", stored } : create();
}

function findReply(db: Connection, scope: string, nowMark: number): StoredReply | null {
  const sql = "SELECT payload_hash, reply FROM replies WHERE scope = ? AND expires_mark > ?";
  return orNull(db.get(sql, scope, nowMark), (row) => ({
    payloadHash: String(row.payload_hash),
    reply: JSON.parse(String(row.reply)) as Reply,
  }));
}

function saveReply(db: Connection, { scope, payloadHash, expiresMark }: NewKey, reply: Reply): void {
  // an expired row of the same scope may still be there
  const sql = "INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?)";
  db.run(sql, scope, payloadHash, JSON.stringify(reply), expiresMark);
}

/** Inserts a run, which takes the pending wakes of its session, and the reply of its key. */
export function createRun(
  db: Connection,
  run: NewRun,
  key?: NewKey,
): { readonly kind: "created"; readonly seq: number; readonly wakes: number } | { readonly kind: "empty" } {
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

// decisions: A group's stream counts the ends of its runs
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

/** Takes a run out of its group, and deletes the group with its last run. Returns the number of deleted rows. */
export function leaveGroup(db: Connection, run: number): number {
  const group = db.get("SELECT run_group FROM group_runs WHERE run = ?", run)?.run_group;
  if (group === undefined) return 0;
  const { changes } = db.run("DELETE FROM group_runs WHERE run = ?", run);
  const sql = "DELETE FROM run_groups WHERE seq = ? AND NOT EXISTS (SELECT 1 FROM group_runs WHERE run_group = ?)";
  return changes + db.run(sql, group, group).changes;
}

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

/** Deletes the message of a run, and its graph where no other run has it. Returns the number of deleted rows. */
export function removeMessage(db: Connection, run: number): number {
  const graph = db.get("SELECT graph FROM messages WHERE run = ?", run)?.graph ?? null;
  const { changes } = db.run("DELETE FROM messages WHERE run = ?", run);
  if (graph === null) return changes;
  const sql = "DELETE FROM graphs WHERE hash = ? AND NOT EXISTS (SELECT 1 FROM messages WHERE graph = ?)";
  return changes + db.run(sql, graph, graph).changes;
}
