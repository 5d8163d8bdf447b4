import { randomUUID } from "node:crypto";
import { LatentkitError } from "../../../../base/errors.js";
import { checkOptions, type OptionRules } from "../../../../base/options.js";
import type { RunSummary } from "../../run.js";
import type { Leases } from "../leases.js";
import type { Ending, EventBatch, EventLimits, Store } from "../store.js";
import { Connection } from "./connection.js";
import * as events from "./event-rows.js";
import { InOrder } from "./in-order.js";
import * as inbox from "./inbox.js";
import * as leases from "./lease-rows.js";
import { Owner } from "./owner.js";
import { ping } from "./ping.js";
import * as runs from "./run-rows.js";
import { sweep } from "./sweep.js";

const SCHEMA = "latentkit";
const CONNECTIONS = 10;

/** Options of `createPostgresStore`. */
export interface PostgresStoreOptions {
  /** `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, with `?sslmode=…` and what else `pg` reads. */
  readonly url: string;
  /** Schema that holds the tables; created where it is absent. Default: latentkit. */
  readonly schema?: string;
  /** Most connections that are open at once. Default: 10. */
  readonly connections?: number;
}

/** A store in a PostgreSQL database. `token`, where it is given, must be that of the run's last start. */
export interface PostgresStore extends Store, Leases {
  append(id: string, batch: EventBatch, limits: EventLimits, token?: number): Promise<boolean>;
  endRun(
    id: string,
    ending: Ending,
    batch: EventBatch,
    limits: EventLimits,
    token?: number,
  ): Promise<RunSummary | null>;

  /**
   * Connects and migrates the tables; every other method does so where it has not been done. Rejects with config.invalid
   * where the server cannot be reached or is older than 15, or the schema belongs to another program or a newer version.
   */
  open(): Promise<void>;
}

const STORE_RULES: OptionRules<PostgresStoreOptions> = {
  url: ["an address postgres://…", (value) => typeof value === "string" && /^postgres(ql)?:\/\//.test(value)],
  schema: [
    "a name of a-z, 0-9 and _, at most 63 characters",
    (value) => typeof value === "string" && /^[a-z_][a-z0-9_]{0,62}$/.test(value) && !value.startsWith("pg_"),
  ],
  connections: [
    "a whole number from 1 to 1,000",
    (value) => Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 1000,
  ],
};

// decisions 227, 229
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
  const worker = randomUUID();
  const owner = new Owner(db, worker);
  /** Tokens of the runs that were started by their id: a later start by another process ends this one's right to write. */
  const tokens = new Map<string, number>();
  return {
    open: () => db.open().catch((cause: unknown) => Promise.reject(openError(cause, url))),
    async leftOver() {
      await owner.take();
      return runs.leftOver(db);
    },
    findReply: (scope, nowMark) => inbox.findReply(db, scope, nowMark),
    createRun: (run, key) => sessions.run(run.sessionKey, () => db.transaction((tx) => inbox.createRun(tx, run, key))),
    addWake: (wake, key) => sessions.run(wake.sessionKey, () => db.transaction((tx) => inbox.addWake(tx, wake, key))),
    pendingSessions: () => inbox.pendingSessions(db),
    getRun: (id) => runs.getRun(db, id),
    getSummary: (id) => runs.getSummary(db, id),
    getStatus: (id, maxFiles) => runs.getStatus(db, id, maxFiles),
    listRuns: (before, limit, filter) => runs.listRuns(db, before, limit, filter),
    startRun: (id, startedAt, event) =>
      single.run(id, async () => {
        owner.check();
        const held = await runs.startRun(db, id, { worker, leaseMs: null, startedAt, event });
        if (held !== null) tokens.set(id, held.token);
        return held?.run ?? null;
      }),
    requeueRun: (id) => single.run(id, () => runs.requeueRun(db, id)),
    append: (id, batch, limits, token = tokens.get(id)) =>
      single.run(
        id,
        async () =>
          (await events.appendWithinLimits(db, id, batch, limits, token)) ||
          db.transaction((tx) => events.append(tx, id, batch, limits, token)),
      ),
    endRun: (id, ending, batch, limits, token = tokens.get(id)) =>
      single.run(id, async () => {
        const ended = await db.transaction((tx) => runs.endRun(tx, id, ending, batch, limits, token));
        tokens.delete(id);
        return ended;
      }),
    claim: (claim) => leases.claim(db, claim),
    renew: (holder, leaseMs) => leases.renew(db, holder, leaseMs),
    recoverLost: (policy) => leases.recoverLost(db, policy),
    readEvents: (id, after, maxEvents, maxBytes) => events.readEvents(db, id, after, maxEvents, maxBytes),
    terminalEvent: (id) => events.terminalEvent(db, id),
    getFile: (id, name) => events.getFile(db, id, name),
    sweep: (request) => db.transaction((tx) => sweep(tx, request, schema)),
    ping: () => ping(db),
    async close() {
      await owner.release();
      await db.close();
    },
  };
}

/** The address may hold a password: no message quotes it. */
function checkTypes(options: Partial<PostgresStoreOptions>): void {
  const { url, ...rest } = { ...options };
  checkOptions("createPostgresStore", rest, STORE_RULES, [], "config.invalid");
  if (STORE_RULES.url[1](url)) return;
  throw new LatentkitError("config.invalid", `createPostgresStore: expected "url", ${STORE_RULES.url[0]}.`);
}

function openError(cause: unknown, url: string): LatentkitError {
  if (cause instanceof LatentkitError) return cause;
  const reason = (cause instanceof Error && (cause.message || (cause as NodeJS.ErrnoException).code)) || String(cause);
  const sentence = `Cannot open the PostgreSQL store at ${addressOf(url)}: ${reason.replace(/\.$/, "")}.`;
  return new LatentkitError("config.invalid", sentence, {}, { cause });
}

/** Host and database of an address, without user and password. */
function addressOf(url: string): string {
  try {
    const { host, pathname } = new URL(url);
    return `postgres://${host}${pathname}`;
  } catch {
    return "the configured address";
  }
}
