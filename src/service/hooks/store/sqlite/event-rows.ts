import type { RunFile } from "../../run.js";
import type { EventBatch, EventLimits } from "../queue-store.js";
import { cursorOf, type EventStore, sliceOf } from "../store.js";
import { type EventRange, exceeds, rowReader, TRIM_PAGE, toEvent, trimmed } from "../tables.js";
import type { Connection } from "./connection.js";
import type { SqlRow } from "./driver.js";

export const { toSummary, toRun, toStatus, toFile, toDelivery, toGroupEnd } = rowReader(
  String,
  (json) => JSON.parse(String(json)) as string,
);

/** The events and files of runs. */
export const eventRows = (db: Connection): EventStore => ({
  readEvents: async (id, after, maxEvents, maxBytes) =>
    db.read(() => {
      const sql = "SELECT seq, oldest_event_id, last_event_id, ended_mark IS NOT NULL AS ended FROM runs WHERE id = ?";
      const row = db.get(sql, id);
      if (row === undefined) return null;
      const [oldestEventId, lastEventId] = [Number(row.oldest_event_id), Number(row.last_event_id)];
      const ids = { oldestEventId, lastEventId, hasEnded: row.ended === 1 };
      const cursor = cursorOf(after, ids);
      if (cursor === lastEventId) return sliceOf([], cursor, ids);
      const until = lastToRead(db, Number(row.seq), cursor, maxEvents, maxBytes);
      const range = "SELECT id, event, data FROM events WHERE run = ? AND id > ? AND id <= ? ORDER BY id";
      return sliceOf(db.all(range, row.seq!, cursor, until).map(toEvent), cursor, ids);
    }),
  terminalEvent: async (id) => db.read(() => terminalEvent(db, id)),
  getFile: async (id, name) => {
    const sql = `SELECT files.name, files.path, files.content_type FROM files JOIN runs ON runs.seq = files.run
      WHERE runs.id = ? AND files.name = ?`;
    return orNull(
      db.read(() => db.get(sql, id, name)),
      toFile,
    );
  },
  removeFile: async (id, name) =>
    db.write("durable", () => {
      const sql = `SELECT files.run FROM files JOIN runs ON runs.seq = files.run
        WHERE runs.id = ? AND files.name = ? AND runs.ended_mark IS NOT NULL`;
      const row = db.get(sql, id, name);
      if (row === undefined) return false;
      db.run("DELETE FROM files WHERE run = ? AND name = ?", row.run!, name);
      db.run("UPDATE runs SET file_count = file_count - 1 WHERE seq = ?", row.run!);
      return true;
    }),
});

export const orNull = <T>(row: SqlRow | undefined, read: (row: SqlRow) => T): T | null =>
  row === undefined ? null : read(row);

export function terminalEvent(db: Connection, id: string) {
  const sql = `SELECT events.id, events.event, events.data FROM runs JOIN events ON events.run = runs.seq
    AND events.id = runs.last_event_id WHERE runs.id = ? AND runs.ended_mark IS NOT NULL`;
  return orNull(db.get(sql, id), toEvent);
}

/** Last id of a slice. Reads the sizes first: data that does not fit is not read. */
function lastToRead(db: Connection, run: number, cursor: number, maxEvents: number, maxBytes: number): number {
  const sql = "SELECT id, bytes FROM events WHERE run = ? AND id > ? ORDER BY id LIMIT ?";
  let until = cursor;
  let total = 0;
  for (const { id, bytes } of db.all(sql, run, cursor, maxEvents)) {
    total += Number(bytes);
    if (until > cursor && total > maxBytes) break;
    until = Number(id);
  }
  return until;
}

/** Adds events and files to a run that exists, and trims its head to the limits. */
export function addEvents(db: Connection, id: string, batch: EventBatch, limits?: EventLimits): void {
  const row = db.get("SELECT seq, oldest_event_id, last_event_id, event_bytes, file_count FROM runs WHERE id = ?", id)!;
  const run = Number(row.seq);
  let range = { oldest: Number(row.oldest_event_id), last: Number(row.last_event_id), bytes: Number(row.event_bytes) };
  if (batch.skip > 0) {
    db.run("DELETE FROM events WHERE run = ?", run);
    const last = range.last + batch.skip;
    range = { oldest: last + 1, last, bytes: 0 };
  }
  let files = Number(row.file_count);
  for (const file of batch.files) files += addFile(db, run, file, files);
  for (const { event, data } of batch.events) {
    const size = Buffer.byteLength(data);
    range.last += 1;
    range.bytes += size;
    db.run("INSERT INTO events VALUES (?, ?, ?, ?, ?)", run, range.last, event, data, size);
  }
  const { oldest, last, bytes } = limits === undefined ? range : trim(db, run, range, limits);
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
  const sql = `INSERT INTO files (run, name, path, content_type, place) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (run, name) DO UPDATE SET path = excluded.path, content_type = excluded.content_type`;
  db.run(sql, run, name, path, contentType, position);
  return isNew ? 1 : 0;
}

function trim(db: Connection, run: number, range: EventRange, limits: EventLimits): EventRange {
  let left = range;
  const sql = `SELECT id, bytes FROM events WHERE run = ? AND id >= ? ORDER BY id LIMIT ${TRIM_PAGE}`;
  while (exceeds(left, limits)) left = trimmed(left, limits, db.all(sql, run, left.oldest));
  if (left.oldest > range.oldest) db.run("DELETE FROM events WHERE run = ? AND id < ?", run, left.oldest);
  return left;
}

export function listFiles(db: Connection, run: number, limit: number): RunFile[] {
  const sql = "SELECT name, path, content_type FROM files WHERE run = ? ORDER BY place, name LIMIT ?";
  return db.all(sql, run, limit).map(toFile);
}
