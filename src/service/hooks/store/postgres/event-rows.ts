import type { RunFile } from "../../run.js";
import type { EventBatch, EventLimits } from "../queue-store.js";
import { type EventStore, sliceOf } from "../store.js";
import { type EventRange, exceeds, rowReader, TRIM_PAGE, toEvent, trimmed } from "../tables.js";
import type { Connection, Transaction } from "./connection.js";
import { fromStored, type SqlRow, toStored, toStoredOrNull } from "./driver.js";

export const { toSummary, toRun, toStatus, toFile, toDelivery, toGroupEnd } = rowReader(fromStored, fromStored);

/** The events and files of runs. */
export const eventRows = (db: Connection): EventStore => ({
  /** One statement: run and events are of the same moment. Data that does not fit is not read. */
  async readEvents(id, after, maxEvents, maxBytes) {
    const rows = await db.query(
      `WITH run AS (
         SELECT seq, oldest_event_id, last_event_id, ended_mark IS NOT NULL AS ended,
           least(greatest($2::bigint, 0), last_event_id) AS cursor
         FROM lk.runs WHERE id = $1
       )
       SELECT run.oldest_event_id, run.last_event_id, run.ended, run.cursor, page.id, page.event, page.data
       FROM run LEFT JOIN LATERAL (
         SELECT id, event, data, row_number() OVER front AS n, sum(bytes) OVER front AS total
         FROM (
           SELECT id, event, data, bytes FROM lk.events
           WHERE events.run = run.seq AND events.id > run.cursor ORDER BY id LIMIT $3
         ) AS next WINDOW front AS (ORDER BY id)
       ) AS page ON page.n = 1 OR page.total <= $4
       ORDER BY page.id`,
      toStored(id),
      Math.min(Math.max(after, 0), Number.MAX_SAFE_INTEGER),
      maxEvents,
      maxBytes,
    );
    const [run] = rows;
    if (run === undefined) return null;
    const [oldestEventId, lastEventId] = [Number(run.oldest_event_id), Number(run.last_event_id)];
    const events = rows.filter((row) => row.id !== null).map(toEvent);
    return sliceOf(events, Number(run.cursor), { oldestEventId, lastEventId, hasEnded: run.ended === true });
  },
  async terminalEvent(id) {
    const sql = `SELECT events.id, events.event, events.data FROM lk.runs JOIN lk.events ON events.run = runs.seq
      AND events.id = runs.last_event_id WHERE runs.id = $1 AND runs.ended_mark IS NOT NULL`;
    return firstOf(await db.query(sql, toStored(id)), toEvent);
  },
  async getFile(id, name) {
    const sql = `SELECT files.name, files.path, files.content_type FROM lk.files JOIN lk.runs ON runs.seq = files.run
      WHERE runs.id = $1 AND files.name = $2`;
    return firstOf(await db.query(sql, toStored(id), toStored(name)), toFile);
  },
  async removeFile(id, name) {
    const sql = `WITH removed AS (
        DELETE FROM lk.files USING lk.runs
        WHERE runs.seq = files.run AND runs.id = $1 AND files.name = $2 AND runs.ended_mark IS NOT NULL
        RETURNING files.run
      )
      UPDATE lk.runs SET file_count = file_count - 1 FROM removed WHERE runs.seq = removed.run RETURNING runs.seq`;
    return (await db.query(sql, toStored(id), toStored(name))).length > 0;
  },
});

export const firstOf = <T>([row]: readonly SqlRow[], read: (row: SqlRow) => T): T | null =>
  row === undefined ? null : read(row);

/** Columns of a run that its events change. */
export const EVENT_COLUMNS = "runs.seq, runs.oldest_event_id, runs.last_event_id, runs.event_bytes, runs.file_count";

/** Adds events to a running run: events alone, within its limits, by one statement. `token` undefined: of any worker. */
export const append = async (
  db: Connection,
  id: string,
  batch: EventBatch,
  limits: EventLimits,
  token?: number,
): Promise<boolean> =>
  (await appendWithinLimits(db, id, batch, limits, token)) ||
  db.transaction(async (tx) => {
    const sql = `SELECT ${EVENT_COLUMNS} FROM lk.runs
      WHERE id = $1 AND state = 'running' AND ($2::bigint IS NULL OR token = $2) FOR NO KEY UPDATE`;
    const [run] = await tx.query(sql, toStored(id), token ?? null);
    if (run !== undefined) await addEvents(tx, run, unstored(batch, Number(run.last_event_id)), limits);
    return run !== undefined;
  });

/** Returns false if more than one statement is needed, and for a run that is not running. */
async function appendWithinLimits(
  db: Connection,
  id: string,
  { after, skip, events, files, progress }: EventBatch,
  limits: EventLimits,
  token?: number,
): Promise<boolean> {
  if (skip > 0 || files.length > 0) return false;
  const sizes = events.map(({ data }) => Buffer.byteLength(data));
  const rows = await db.query(
    `WITH run AS (
       UPDATE lk.runs SET last_event_id = last_event_id + $3, event_bytes = event_bytes + $4,
         progress = coalesce($5, progress)
       WHERE id = $1 AND state = 'running' AND ($2::bigint IS NULL OR token = $2)
         AND ($11::bigint IS NULL OR last_event_id = $11) AND last_event_id + $3 - oldest_event_id < $6
         AND event_bytes + $4 <= $7
       RETURNING seq, last_event_id - $3 AS last
     ), added AS (
       INSERT INTO lk.events SELECT run.seq, run.last + row.n, row.event, row.data, row.bytes
       FROM run, unnest($8::text[], $9::text[], $10::bigint[]) WITH ORDINALITY AS row (event, data, bytes, n)
     )
     SELECT 1 FROM run`,
    toStored(id),
    token ?? null,
    events.length,
    sizes.reduce((sum, size) => sum + size, 0),
    progress === undefined ? null : JSON.stringify(progress),
    limits.events,
    limits.bytes,
    events.map(({ event }) => event),
    events.map(({ data }) => data),
    sizes,
    after ?? null,
  );
  return rows.length > 0;
}

/** The part of a batch that a run does not hold yet. */
export function unstored(batch: EventBatch, lastEvent: number): EventBatch {
  const { after = lastEvent, skip, events } = batch;
  const stored = lastEvent - after;
  return { ...batch, skip: Math.max(0, skip - stored), events: events.slice(Math.max(0, stored - skip)) };
}

/** Adds events and files to a run, given its locked row, and trims its head to the limits. */
export async function addEvents(tx: Transaction, row: SqlRow, batch: EventBatch, limits: EventLimits): Promise<void> {
  const run = Number(row.seq);
  let oldest = Number(row.oldest_event_id);
  let last = Number(row.last_event_id);
  let bytes = Number(row.event_bytes);
  if (batch.skip > 0) {
    await tx.query("DELETE FROM lk.events WHERE run = $1", run);
    last += batch.skip;
    [oldest, bytes] = [last + 1, 0];
  }
  const files = Number(row.file_count) + (await addFiles(tx, run, batch.files, Number(row.file_count)));
  const sizes = batch.events.map(({ data }) => Buffer.byteLength(data));
  const before = last;
  last += sizes.length;
  bytes += sizes.reduce((sum, size) => sum + size, 0);
  await tx.query(
    `WITH added AS (
       INSERT INTO lk.events SELECT $1::bigint, $2::bigint + row.n, row.event, row.data, row.bytes
       FROM unnest($3::text[], $4::text[], $5::bigint[]) WITH ORDINALITY AS row (event, data, bytes, n)
     )
     UPDATE lk.runs SET oldest_event_id = $6, last_event_id = $7, event_bytes = $8, file_count = $9,
       progress = coalesce($10, progress) WHERE seq = $1::bigint`,
    run,
    before,
    batch.events.map(({ event }) => event),
    batch.events.map(({ data }) => data),
    sizes,
    oldest,
    last,
    bytes,
    files,
    batch.progress === undefined ? null : JSON.stringify(batch.progress),
  );
  await trim(tx, run, { oldest, last, bytes }, limits);
}

/** Returns the number of files that the run has more now. */
async function addFiles(tx: Transaction, run: number, files: readonly RunFile[], position: number): Promise<number> {
  if (files.length === 0) return 0;
  // one statement may write a row once
  const byName = [...new Map(files.map((file) => [file.name, file])).values()];
  const added = await tx.query(
    `INSERT INTO lk.files SELECT $1::bigint, row.name, row.path, row.content_type, $2 + row.n
     FROM unnest($3::text[], $4::text[], $5::text[]) WITH ORDINALITY AS row (name, path, content_type, n)
     ON CONFLICT (run, name) DO UPDATE SET path = excluded.path, content_type = excluded.content_type
     RETURNING xmax = 0 AS is_new`,
    run,
    position,
    byName.map(({ name }) => toStored(name)),
    byName.map(({ path }) => toStored(path)),
    byName.map(({ contentType }) => toStoredOrNull(contentType)),
  );
  return added.filter((row) => row.is_new === true).length;
}

/** Deletes the oldest events beyond the limits. */
async function trim(tx: Transaction, run: number, range: EventRange, limits: EventLimits): Promise<void> {
  let left = range;
  const page = `SELECT id, bytes FROM lk.events WHERE run = $1 AND id >= $2 ORDER BY id LIMIT ${TRIM_PAGE}`;
  while (exceeds(left, limits)) left = trimmed(left, limits, await tx.query(page, run, left.oldest));
  if (left.oldest === range.oldest) return;
  const sql = `WITH trimmed AS (DELETE FROM lk.events WHERE run = $1 AND id < $2)
    UPDATE lk.runs SET oldest_event_id = $2, event_bytes = $3 WHERE seq = $1`;
  await tx.query(sql, run, left.oldest, left.bytes);
}
