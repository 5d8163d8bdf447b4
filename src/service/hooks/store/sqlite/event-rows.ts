import type { EventSlice, RunFile, StoredEvent } from "../../types.js";
import type { EventBatch, Keep } from "../store.js";
import type { Connection } from "./connection.js";
import type { SqlRow } from "./driver.js";

export function append(db: Connection, id: string, batch: EventBatch, keep: Keep): boolean {
  if (db.get("SELECT 1 AS yes FROM runs WHERE id = ? AND state = 'running'", id) === undefined) return false;
  addEvents(db, id, batch, keep);
  return true;
}

/** Adds events and files to a run that exists, and trims its head to `keep`. */
export function addEvents(db: Connection, id: string, batch: EventBatch, keep?: Keep): void {
  const row = db.get("SELECT seq, oldest_event, last_event, event_bytes, files FROM runs WHERE id = ?", id)!;
  const run = Number(row.seq);
  let oldest = Number(row.oldest_event);
  let last = Number(row.last_event);
  let bytes = Number(row.event_bytes);
  if (batch.skip > 0) {
    db.run("DELETE FROM events WHERE run = ?", run);
    last += batch.skip;
    [oldest, bytes] = [last + 1, 0];
  }
  let files = Number(row.files);
  for (const file of batch.files) files += addFile(db, run, file, files);
  for (const { event, data } of batch.events) {
    last += 1;
    const size = Buffer.byteLength(data);
    bytes += size;
    db.run("INSERT INTO events VALUES (?, ?, ?, ?, ?)", run, last, event, data, size);
  }
  if (keep !== undefined) [oldest, bytes] = trim(db, run, { oldest, last, bytes }, keep);
  db.run(
    `UPDATE runs SET oldest_event = ?, last_event = ?, event_bytes = ?, files = ?, progress = ifnull(?, progress)
     WHERE seq = ?`,
    oldest,
    last,
    bytes,
    files,
    batch.progress === undefined ? null : JSON.stringify(batch.progress),
    run,
  );
}

/** Returns by how many files the run has more. */
function addFile(db: Connection, run: number, { name, path, contentType }: RunFile, place: number): 0 | 1 {
  const isNew = db.get("SELECT 1 AS yes FROM files WHERE run = ? AND name = ?", run, name) === undefined;
  db.run(
    `INSERT INTO files (run, name, path, content_type, place) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (run, name) DO UPDATE SET path = excluded.path, content_type = excluded.content_type`,
    run,
    name,
    path,
    contentType,
    place,
  );
  return isNew ? 1 : 0;
}

function trim(
  db: Connection,
  run: number,
  { oldest, last, bytes }: { oldest: number; last: number; bytes: number },
  keep: Keep,
): [oldest: number, bytes: number] {
  let first = oldest;
  let left = bytes;
  const isOver = () => first < last && (last - first + 1 > keep.events || left > keep.bytes);
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
  const sql = "SELECT seq, oldest_event, last_event, ended_mark IS NOT NULL AS ended FROM runs WHERE id = ?";
  const row = db.get(sql, id);
  if (row === undefined) return null;
  const [run, oldestEventId, lastEventId] = [Number(row.seq), Number(row.oldest_event), Number(row.last_event)];
  const cursor = Math.min(Math.max(after, 0), lastEventId);
  const events: StoredEvent[] = [];
  if (cursor < lastEventId) {
    const until = lastToRead(db, run, cursor, maxEvents, maxBytes);
    const found = db.all(
      "SELECT id, event, data FROM events WHERE run = ? AND id > ? AND id <= ? ORDER BY id",
      run,
      cursor,
      until,
    );
    events.push(...found.map(toEvent));
  }
  const reached = events.at(-1)?.id ?? cursor;
  return {
    events,
    oldestEventId,
    lastEventId,
    truncated: cursor + 1 < oldestEventId,
    end: row.ended === 1 && reached === lastEventId,
  };
}

/** Sizes first: the data of a slice's events is read only where it fits. */
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
     AND events.id = runs.last_event WHERE runs.id = ? AND runs.ended_mark IS NOT NULL`,
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
