import type { EventSlice, RunFile, StoredEvent } from "../types.js";
import type { Connection } from "./sqlite-connection.js";
import type { SqlRow } from "./sqlite-driver.js";
import type { EventBatch, Keep } from "./store.js";

export function append(db: Connection, id: string, batch: EventBatch, keep: Keep): boolean {
  if (db.get("SELECT 1 AS yes FROM runs WHERE id = ? AND state = 'running'", id) === undefined) return false;
  addEvents(db, id, batch, keep);
  return true;
}

/** Adds events and files to a run that exists, and trims its head to `keep`. */
export function addEvents(db: Connection, id: string, batch: EventBatch, keep?: Keep): void {
  const row = db.get("SELECT seq, oldest_event, last_event, event_bytes FROM runs WHERE id = ?", id)!;
  const run = Number(row.seq);
  let oldest = Number(row.oldest_event);
  let last = Number(row.last_event);
  let bytes = Number(row.event_bytes);
  if (batch.skip > 0) {
    db.run("DELETE FROM events WHERE run = ?", run);
    last += batch.skip;
    [oldest, bytes] = [last + 1, 0];
  }
  for (const { name, path, contentType } of batch.files) {
    db.run("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)", run, name, path, contentType);
  }
  for (const { event, data } of batch.events) {
    last += 1;
    const size = Buffer.byteLength(data);
    bytes += size;
    db.run("INSERT INTO events VALUES (?, ?, ?, ?, ?)", run, last, event, data, size);
  }
  if (keep !== undefined) [oldest, bytes] = trim(db, run, { oldest, last, bytes }, keep);
  db.run("UPDATE runs SET oldest_event = ?, last_event = ?, event_bytes = ? WHERE seq = ?", oldest, last, bytes, run);
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
  if (row === undefined) return null;
  const contentType = row.content_type === null ? null : String(row.content_type);
  return { name: String(row.name), path: String(row.path), contentType };
}

const toEvent = (row: SqlRow): StoredEvent => ({
  id: Number(row.id),
  event: String(row.event),
  data: String(row.data),
});
