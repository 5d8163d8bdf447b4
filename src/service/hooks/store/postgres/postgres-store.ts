import { randomUUID } from "node:crypto";
import { LatentkitError } from "../../../../base/errors.js";
import { checkOptions, type OptionRules, type Rule } from "../../../../base/options.js";
import { placeOf } from "../../../../render/config/secrets.js";
import { PLAIN_TERMS } from "../../run.js";
import type { SharedStore } from "../store.js";
import { Changes } from "./changes.js";
import { Connection } from "./connection.js";
import * as deliveries from "./delivery-rows.js";
import { fromStored, toStored } from "./driver.js";
import * as events from "./event-rows.js";
import * as groups from "./group-rows.js";
import * as inbox from "./inbox.js";
import { createRun } from "./inbox.js";
import * as leases from "./queue-rows.js";
import * as queue from "./queue-rows.js";
import * as runs from "./run-rows.js";
import { endRun, startRuns } from "./run-rows.js";
import { removeEnded, sweep } from "./sweep.js";

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

// decisions 229, 232
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
  const tellIf = <T>(result: T, id: string): T => {
    if (result !== null && result !== false) tell(id);
    return result;
  };
  return {
    open: () => db.open().catch((cause: unknown) => Promise.reject(openError(cause, url))),
    openQueue: (perSession) => db.transaction((tx) => queue.openQueue(tx, perSession)),
    isPaused: () => queue.isPaused(db),
    setPaused: (isPaused) => queue.setPaused(db, isPaused),
    findReply: (scope, nowMark) => inbox.findReply(db, scope, nowMark),
    createRun: (run, key) =>
      sessions.run(run.sessionKey, async () => {
        const result = await db.transaction((tx) => inbox.createRun(tx, run, key));
        if (result.kind === "created") tell(run.id);
        return result;
      }),
    createGroup: (group, key) => {
      const keys = [...new Set(group.runs.map(({ sessionKey }) => sessionKey))];
      return sessions.runAll(keys, async () => {
        const result = await db.transaction((tx) => groups.createGroup(tx, group, key));
        if (result.kind === "created") for (const { id } of group.runs) tell(id);
        return result;
      });
    },
    addWake: (wake, key) => sessions.run(wake.sessionKey, () => db.transaction((tx) => inbox.addWake(tx, wake, key))),
    pendingSessions: () => inbox.pendingSessions(db),
    getRun: (id) => runs.getRun(db, id),
    getSummary: (id) => runs.getSummary(db, id),
    getStatus: (id, maxFiles) => runs.getStatus(db, id, maxFiles),
    listRuns: (before, limit, filter) => runs.listRuns(db, before, limit, filter),
    retryRun: (id, retry, batch, limits, token) =>
      single.run(id, async () =>
        tellIf(await db.transaction((tx) => runs.retryRun(tx, id, retry, batch, limits, token)), id),
      ),
    append: (id, batch, limits, token) =>
      single.run(id, async () => {
        const isAdded =
          (await events.appendWithinLimits(db, id, batch, limits, token)) ||
          (await db.transaction((tx) => events.append(tx, id, batch, limits, token)));
        return tellIf(isAdded, id);
      }),
    endRun: (id, ending, batch, limits, token) =>
      single.run(id, async () => {
        const ended = await db.transaction((tx) => runs.endRun(tx, id, ending, batch, limits, token));
        if (ended !== null && ended.groupId !== null) tell(ended.groupId);
        return tellIf(ended !== null, id);
      }),
    async claim(claim) {
      const held = await leases.claim(db, claim);
      for (const { run } of held) tell(run.id);
      return held;
    },
    renew: (holder, leaseMs) => leases.renew(db, holder, leaseMs),
    release: async (id, token) => tellIf(await runs.releaseRun(db, id, token), id),
    async recoverLost(policy) {
      const lost = await leases.recoverLost(db, policy);
      for (const id of [...lost.requeued, ...lost.ended]) tell(id);
      return lost;
    },
    listen: (listener) => changes.listen((stored) => listener(stored === null ? null : fromStored(stored))),
    removeRuns: (ids) => db.transaction((tx) => removeEnded(tx, ids)),
    now: () => queue.now(db),
    countRuns: (most) => queue.countRuns(db, most),
    positionOf: (id, most) => queue.positionOf(db, id, most),
    nextMarks: (afterMark) => queue.nextMarks(db, afterMark),
    overdue: (readyBefore, count) => queue.overdue(db, readyBefore, count),
    pastDeadline: (nowMark, count) => queue.pastDeadline(db, nowMark, count),
    revisions: (ids) => queue.revisions(db, ids),
    readEvents: (id, after, maxEvents, maxBytes) => events.readEvents(db, id, after, maxEvents, maxBytes),
    readGroup: (id, after, most) => groups.readGroup(db, id, after, most),
    groupOf: (runId) => groups.groupOf(db, runId),
    terminalEvent: (id) => events.terminalEvent(db, id),
    getFile: (id, name) => events.getFile(db, id, name),
    removeFile: (id, name) => events.removeFile(db, id, name),
    claimDeliveries: (claim) => deliveries.claimDeliveries(db, claim),
    settleDelivery: (id, token, settlement) =>
      db.transaction((tx) => deliveries.settleDelivery(tx, id, token, settlement)),
    getDelivery: (id) => deliveries.getDelivery(db, id),
    listDeliveries: (before, limit, filter) => deliveries.listDeliveries(db, before, limit, filter),
    countPendingDeliveries: (most) => deliveries.countPendingDeliveries(db, most),
    redeliver: (id) => deliveries.redeliver(db, id),
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
    const id = randomUUID();
    const message = "trial";
    const common = {
      id,
      sessionKey: id,
      start: { origin: "agent" },
      terms: { ...PLAIN_TERMS, timeoutSeconds: 1 },
      createdAt: 0,
    } as const;
    const key = { scope: id, payloadHash: "", nowMark: 0, expiresMark: 0 };
    await createRun(tx, { ...common, createdMark: 0, maxWakeBytes: 0, compose: () => message }, key);
    const event = { event: "status", data: message };
    const which = "SELECT seq FROM lk.runs WHERE id = $1";
    await startRuns(tx, { which, worker: id, leaseMs: null, startedAt: 0, event }, id);
    const ending = { from: ["running"], to: "succeeded", finishedAt: 0, endedMark: 0, error: null } as const;
    const terminal = { event: "done", data: message };
    await endRun(tx, id, { ...ending, terminal }, { skip: 0, events: [], files: [] }, { events: 1, bytes: 1 });
    return tx.undo(undefined);
  });
  await db.query("UPDATE lk.pings SET at = now() WHERE id = 1");
}

/** Does the work of one key in the order of the calls; that of different keys at the same time. @internal */
export class InOrder {
  readonly #last = new Map<string, Promise<unknown>>();

  run<T>(key: string, work: () => Promise<T>): Promise<T> {
    return this.runAll([key], work);
  }

  /** Does work that belongs to several keys, all different. */
  async runAll<T>(keys: readonly string[], work: () => Promise<T>): Promise<T> {
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
