import type { EventSlice, RunFile, StoredEvent } from "../../run.js";
import { cursorOf, type EventBatch, type EventLimits, sliceOf } from "../store.js";
import type { Connection } from "./connection.js";
import type { SqlRow } from "./driver.js";

export function append(db: Connection, id: string, batch: EventBatch, limits: EventLimits): boolean {
  if (db.get("SELECT 1 AS yes FROM runs WHERE id = ? AND state = 'running'", id) === undefined) return false;
  addEvents(db, id, batch, limits);
  return true;
}

/** Adds events and files to a run that exists, and trims its head to the limits. */
export function addEvents(db: Connection, id: string, batch: EventBatch, limits?: EventLimits): void {
  const row = db.get("SELECT seq, oldest_event_id, last_event_id, event_bytes, file_count FROM runs WHERE id = ?", id)!;
  const run = Number(row.seq);
  let oldest = Number(row.oldest_event_id);
  let last = Number(row.last_event_id);
  let bytes = Number(row.event_bytes);
  if (batch.skip > 0) {
    db.run("DELETE FROM events WHERE run = ?", run);
    last += batch.skip;
    [oldest, bytes] = [last + 1, 0];
  }
  let files = Number(row.file_count);
  for (const file of batch.files) files += addFile(db, run, file, files);
  for (const { event, data } of batch.events) {
    last += 1;
    const size = Buffer.byteLength(data);
    bytes += size;
    db.run("INSERT INTO events VALUES (?, ?, ?, ?, ?)", run, last, event, data, size);
  }
  if (limits !== undefined) [oldest, bytes] = trim(db, run, { oldest, last, bytes }, limits);
  db.run(
    `UPDATE runs SET oldest_event_id = ?, last_event_id = ?, event_bytes = ?, file_count = ?,
       progress = ifnull(?, progress) WHERE seq = ?`,
    oldest,
    last,
    bytes,
    files,
    batch.progress === undefined ? null : JSON.stringify(batch.progress),
    run,
  );
}

/** Returns the number of files that the run has more now. */
function addFile(db: Connection, run: number, { name, path, contentType }: RunFile, position: number): 0 | 1 {
  const isNew = db.get("SELECT 1 AS yes FROM files WHERE run = ? AND name = ?", run, name) === undefined;
  db.run(
    `INSERT INTO files (run, name, path, content_type, place) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (run, name) DO UPDATE SET path = excluded.path, content_type = excluded.content_type`,
    run,
    name,
    path,
    contentType,
    position,
  );
  return isNew ? 1 : 0;
}

function trim(
  db: Connection,
  run: number,
  { oldest, last, bytes }: { oldest: number; last: number; bytes: number },
  limits: EventLimits,
): [oldest: number, bytes: number] {
  let first = oldest;
  let left = bytes;
  const isOver = () => first < last && (last - first + 1 > limits.events || left > limits.bytes);
  while (isOver()) {
    for (const row of db.all(
      "SELECT id, bytes FROM events WHERE run = ? AND id >= ? ORDER BY id LIMIT 500",
      run,
      first,
    )) {
      if (!isOver()) break;
      first = Number(row.id) + 1;
      left -= Number(row.bytes);
    }
  }
  if (first > oldest) db.run("DELETE FROM events WHERE run = ? AND id < ?", run, first);
  return [first, left];
}

export function readEvents(
  db: Connection,
  id: string,
  after: number,
  maxEvents: number,
  maxBytes: number,
): EventSlice | null {
  const sql = "SELECT seq, oldest_event_id, last_event_id, ended_mark IS NOT NULL AS ended FROM runs WHERE id = ?";
  const row = db.get(sql, id);
  if (row === undefined) return null;
  const [run, oldestEventId, lastEventId] = [Number(row.seq), Number(row.oldest_event_id), Number(row.last_event_id)];
  const ids = { oldestEventId, lastEventId, hasEnded: row.ended === 1 };
  const cursor = cursorOf(after, ids);
  if (cursor === lastEventId) return sliceOf([], cursor, ids);
  const until = lastToRead(db, run, cursor, maxEvents, maxBytes);
  const range = "SELECT id, event, data FROM events WHERE run = ? AND id > ? AND id <= ? ORDER BY id";
  return sliceOf(db.all(range, run, cursor, until).map(toEvent), cursor, ids);
}

/** Last id of a slice. Reads the sizes first: data that does not fit is not read. */
function lastToRead(db: Connection, run: number, cursor: number, maxEvents: number, maxBytes: number): number {
  const sizes = db.all(
    "SELECT id, bytes FROM events WHERE run = ? AND id > ? ORDER BY id LIMIT ?",
    run,
    cursor,
    maxEvents,
  );
  let until = cursor;
  let total = 0;
  for (const { id, bytes } of sizes) {
    total += Number(bytes);
    if (until > cursor && total > maxBytes) break;
    until = Number(id);
  }
  return until;
}

export function terminalEvent(db: Connection, id: string): StoredEvent | null {
  const row = db.get(
    `SELECT events.id, events.event, events.data FROM runs JOIN events ON events.run = runs.seq
     AND events.id = runs.last_event_id WHERE runs.id = ? AND runs.ended_mark IS NOT NULL`,
    id,
  );
  return row === undefined ? null : toEvent(row);
}

export function getFile(db: Connection, id: string, name: string): RunFile | null {
  const row = db.get(
    `SELECT files.name, files.path, files.content_type FROM files JOIN runs ON runs.seq = files.run
     WHERE runs.id = ? AND files.name = ?`,
    id,
    name,
  );
  return row === undefined ? null : toFile(row);
}

/** Removes a file of an ended run; false where there is none. */
export function removeFile(db: Connection, id: string, name: string): boolean {
  const sql = `SELECT files.run FROM files JOIN runs ON runs.seq = files.run
    WHERE runs.id = ? AND files.name = ? AND runs.ended_mark IS NOT NULL`;
  const row = db.get(sql, id, name);
  if (row === undefined) return false;
  db.run("DELETE FROM files WHERE run = ? AND name = ?", row.run!, name);
  db.run("UPDATE runs SET file_count = file_count - 1 WHERE seq = ?", row.run!);
  return true;
}

export function listFiles(db: Connection, run: number, limit: number): RunFile[] {
  const sql = "SELECT name, path, content_type FROM files WHERE run = ? ORDER BY place, name LIMIT ?";
  return db.all(sql, run, limit).map(toFile);
}

const toFile = (row: SqlRow): RunFile => ({
  name: String(row.name),
  path: String(row.path),
  contentType: row.content_type === null ? null : String(row.content_type),
});

const toEvent = (row: SqlRow): StoredEvent => ({
  id: Number(row.id),
  event: String(row.event),
  data: String(row.data),
});
