import { LatentkitError } from "../../../../base/errors.js";
import { checkOptions, type OptionRules, type Rule } from "../../../../base/options.js";
import { placeOf } from "../../../../render/config/secrets.js";
import { NO_EVENTS } from "../queue-store.js";
import { type SharedStore, type SweepRequest, type SweepResult, trialRun } from "../store.js";
import { Changes } from "./changes.js";
import { Connection, type Transaction } from "./connection.js";
import { deliveryRows, sweepDeliveries } from "./delivery-rows.js";
import { fromStored, type SqlRow, toStored } from "./driver.js";
import { append, eventRows } from "./event-rows.js";
import { createGroup, groupRows, leaveGroups } from "./group-rows.js";
import { addWake, createRun, findReply, pendingSessions, removeMessages } from "./inbox.js";
import { queueRows } from "./queue-rows.js";
import { endRun, retryRun, runRows, startRuns } from "./run-rows.js";
import { SWEEP_LOCKS } from "./schema.js";

const SCHEMA = "latentkit";
const CONNECTIONS = 10;

/** Options of `createPostgresStore`. */
export interface PostgresStoreOptions {
  /** `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, with `?sslmode=…` and what else `pg` reads. */
  readonly url: string;
  /** Schema that holds the tables; created where it is absent. Default: latentkit. */
  readonly schema?: string;
  /** Most connections that are open at once, without the one of `listen`. Default: 10. */
  readonly connections?: number;
  /** Address for `listen`, of the server itself, where `url` is that of a pooler. Default: url. */
  readonly listenUrl?: string;
}

/** A store in a PostgreSQL database, which processes of several machines share. */
export interface PostgresStore extends SharedStore {
  /**
   * Connects, and creates the tables where there are none; every other method does so where it has not been done.
   * Rejects with config.invalid where the server cannot be reached or is older than 15, or the schema belongs to another
   * program or another version.
   */
  open(): Promise<void>;
}

const ADDRESS: Rule = [
  "an address postgres://…",
  (value) => typeof value === "string" && /^postgres(ql)?:\/\//.test(value),
];
const STORE_RULES: OptionRules<PostgresStoreOptions> = {
  url: ADDRESS,
  listenUrl: ADDRESS,
  schema: [
    "a name of a-z, 0-9 and _, at most 63 characters",
    (value) => typeof value === "string" && /^[a-z_][a-z0-9_]{0,62}$/.test(value) && !value.startsWith("pg_"),
  ],
  connections: [
    "a whole number from 1 to 1,000",
    (value) => Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 1000,
  ],
};

// All commits are durable, those of events too: a remote reader has seen what a crash would take back.
// decisions: PostgreSQL and no separate queue
/**
 * Stores runs and events in a PostgreSQL database, by the package `pg`. Connects with the first call. Throws
 * config.invalid where `pg` is not installed.
 */
export function createPostgresStore(options: PostgresStoreOptions): PostgresStore {
  checkTypes(options);
  const { url, schema = SCHEMA, connections = CONNECTIONS } = options;
  const db = new Connection({ url, schema, connections });
  const sessions = new InOrder();
  const single = new InOrder();
  const changes = new Changes(db, options.listenUrl ?? url, schema);
  const tell = (id: string) => changes.tell(toStored(id));
  const tellIf = (isChanged: boolean, id: string): boolean => {
    if (isChanged) tell(id);
    return isChanged;
  };
  return {
    ...runRows(db, tell),
    ...queueRows(db, tell),
    ...eventRows(db),
    ...groupRows(db),
    ...deliveryRows(db),
    open: () => db.open().catch((cause: unknown) => Promise.reject(openError(cause, url))),
    findReply: (scope, nowMark) => findReply(db, scope, nowMark),
    createRun: (run, key) =>
      sessions.run([run.sessionKey], async () => {
        const result = await db.transaction((tx) => createRun(tx, run, key));
        if (result.kind === "created") tell(run.id);
        return result;
      }),
    createGroup: (group, key) => {
      const keys = [...new Set(group.runs.map(({ sessionKey }) => sessionKey))];
      return sessions.run(keys, async () => {
        const result = await db.transaction((tx) => createGroup(tx, group, key));
        if (result.kind === "created") for (const { id } of group.runs) tell(id);
        return result;
      });
    },
    addWake: (wake, key) => sessions.run([wake.sessionKey], () => db.transaction((tx) => addWake(tx, wake, key))),
    pendingSessions: () => pendingSessions(db),
    retryRun: (id, retry, batch, limits, token) =>
      single.run([id], async () =>
        tellIf(await db.transaction((tx) => retryRun(tx, id, retry, batch, limits, token)), id),
      ),
    append: (id, batch, limits, token) =>
      single.run([id], async () => tellIf(await append(db, id, batch, limits, token), id)),
    endRun: (id, ending, batch, limits, token) =>
      single.run([id], async () => {
        const ended = await db.transaction((tx) => endRun(tx, id, ending, batch, limits, token));
        if (ended !== null && ended.groupId !== null) tell(ended.groupId);
        return tellIf(ended !== null, id);
      }),
    listen: (listener) => changes.listen((stored) => listener(stored === null ? null : fromStored(stored))),
    removeRuns: (ids) => db.transaction((tx) => removeEnded(tx, ids)),
    sweep: (request) => db.transaction((tx) => sweep(tx, request, schema)),
    ping: () => ping(db),
    async close() {
      await changes.close();
      await db.close();
    },
  };
}

/** An address may hold a password: no message quotes it. */
function checkTypes(options: Partial<PostgresStoreOptions>): void {
  const { url, listenUrl, ...rest } = { ...options };
  checkOptions("createPostgresStore", rest, STORE_RULES, [], "config.invalid");
  for (const [name, value] of Object.entries({ url, listenUrl: listenUrl ?? url })) {
    if (ADDRESS[1](value)) continue;
    throw new LatentkitError("config.invalid", `createPostgresStore: expected "${name}", ${ADDRESS[0]}.`);
  }
}

function openError(cause: unknown, url: string): LatentkitError {
  if (cause instanceof LatentkitError) return cause;
  const reason = (cause instanceof Error && (cause.message || (cause as NodeJS.ErrnoException).code)) || String(cause);
  const place = placeOf(url);
  const address = place === undefined ? "the configured address" : `postgres://${place}`;
  const sentence = `Cannot open the PostgreSQL store at ${address}: ${reason.replace(/\.$/, "")}.`;
  return new LatentkitError("config.invalid", sentence, {}, { cause });
}

/**
 * Checks that a run could be started: starts one and takes it back, and commits a row, for which the server must be able
 * to write its log.
 */
async function ping(db: Connection): Promise<void> {
  await db.transaction(async (tx) => {
    const { run, key, started, ending, limits } = trialRun();
    await createRun(tx, run, key);
    const which = "SELECT seq FROM lk.runs WHERE id = $1";
    await startRuns(tx, { which, worker: run.id, leaseMs: null, startedAt: 0, event: started }, run.id);
    await endRun(tx, run.id, ending, NO_EVENTS, limits);
    return tx.undo(undefined);
  });
  await db.query("UPDATE lk.pings SET at = now() WHERE id = 1");
}

/** Does the work of equal keys in the order of the calls; other work at the same time. @internal */
export class InOrder {
  readonly #last = new Map<string, Promise<unknown>>();

  /** `keys`: all different. */
  async run<T>(keys: readonly string[], work: () => Promise<T>): Promise<T> {
    const before = keys.flatMap((key) => this.#last.get(key) ?? []);
    const own = before.length === 0 ? work() : Promise.allSettled(before).then(work);
    for (const key of keys) this.#last.set(key, own);
    try {
      return await own;
    } finally {
      for (const key of keys) if (this.#last.get(key) === own) this.#last.delete(key);
    }
  }
}

/** Runs that are removed by one statement. */
const BATCH = 200;

/**
 * Deletes runs and replies that have outlived their retention, at most about `budget` rows. While another process does,
 * it deletes nothing.
 */
async function sweep(tx: Transaction, request: SweepRequest, schema: string): Promise<SweepResult> {
  const [lock] = await tx.query("SELECT pg_try_advisory_xact_lock($1, hashtext($2)) AS held", SWEEP_LOCKS, schema);
  const [counted] = await tx.query("SELECT count(*) AS n FROM lk.runs WHERE ended_mark IS NOT NULL");
  const ended = Number(counted!.n);
  if (lock!.held !== true) return { removedRuns: 0, endedRuns: ended, more: false };
  let { budget } = request;
  let removedRuns = 0;
  for (let isDone = false; !isDone && budget > 0; ) {
    const rows = await oldest(tx);
    const due: SqlRow[] = [];
    for (const row of rows) {
      const isOld = Number(row.ended_mark) <= request.endedBefore;
      if (budget <= 0 || !(isOld || ended - removedRuns > request.maxEndedRuns)) break;
      // its own row, its message, its events and its files
      budget -= 2 + Number(row.events) + Number(row.file_count);
      removedRuns += 1;
      due.push(row);
    }
    await removeRuns(tx, due);
    isDone = due.length < BATCH;
  }
  const { nowMark, endedBefore, maxEndedDeliveries } = request;
  if (budget > 0) budget -= await sweepDeliveries(tx, nowMark - endedBefore, maxEndedDeliveries, budget);
  const expired = await tx.query(
    "DELETE FROM lk.replies WHERE scope IN (SELECT scope FROM lk.replies WHERE expires_mark <= $1 LIMIT $2) RETURNING 1",
    request.nowMark,
    Math.max(budget, 1),
  );
  return { removedRuns, endedRuns: ended - removedRuns, more: budget - expired.length <= 0 };
}

/** Removes runs that have ended, by their ids. */
async function removeEnded(tx: Transaction, ids: readonly string[]): Promise<void> {
  const sql = "SELECT seq, session FROM lk.runs WHERE id = ANY($1) AND ended_mark IS NOT NULL ORDER BY seq FOR UPDATE";
  await removeRuns(tx, await tx.query(sql, ids.map(toStored)));
}

const oldest = (tx: Transaction): Promise<SqlRow[]> =>
  tx.query(
    `SELECT seq, session, ended_mark, file_count, last_event_id - oldest_event_id + 1 AS events FROM lk.runs
     WHERE ended_mark IS NOT NULL ORDER BY ended_mark, seq LIMIT $1`,
    BATCH,
  );

async function removeRuns(tx: Transaction, rows: readonly SqlRow[]): Promise<void> {
  if (rows.length === 0) return;
  const seqs = rows.map(({ seq }) => seq!);
  await removeMessages(tx, seqs);
  await leaveGroups(tx, seqs);
  for (const table of ["events", "files", "tags"]) {
    await tx.query(`DELETE FROM lk.${table} WHERE run = ANY($1)`, seqs);
  }
  await tx.query("DELETE FROM lk.runs WHERE seq = ANY($1)", seqs);
  // the counts are those of the newest version of the row: a run that was created meanwhile keeps its session
  const sessions = rows.map(({ session }) => session!);
  await tx.query(
    `UPDATE lk.sessions SET runs = runs - gone.n
     FROM (SELECT id, count(*) AS n FROM unnest($1::bigint[]) AS id GROUP BY id) AS gone WHERE sessions.id = gone.id`,
    sessions,
  );
  await tx.query("DELETE FROM lk.sessions WHERE id = ANY($1) AND runs = 0 AND wakes = 0", sessions);
}
