import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { inspect } from "node:util";
import { createPool } from "#src/service/hooks/store/postgres/driver.js";
import { createPostgresStore, InOrder, type PostgresStore } from "#src/service/hooks/store/postgres/postgres-store.js";
import { type EventLimits, NO_EVENTS } from "#src/service/hooks/store/queue-store.js";
import type { NewRun } from "#src/service/hooks/store/store.js";
import { refuses } from "../../../../../helpers/errors.js";
import { wakeLimits } from "../../../../../helpers/hooks/backlog.js";
import { claimOf, startNext } from "../../../../../helpers/hooks/claims.js";
import { refusesHook } from "../../../../../helpers/hooks/hook-runs.js";
import { newRun as runOf } from "../../../../../helpers/hooks/new-run.js";
import { newSchema, postgres } from "../../../../../helpers/postgres/cluster.js";
import { startProxy } from "../../../../../helpers/postgres/proxy.js";

const KEEP: EventLimits = { events: 1000, bytes: 1_000_000 };
const started = { event: "status", data: "{}" };
const newRun = (id: string, extra: Parameters<typeof runOf>[1] = {}): NewRun =>
  runOf(id, { createdAt: 1, createdMark: 1, compose: (pending) => [...pending, id].join("|"), ...extra });
const key = (scope: string, marks = { nowMark: 0, expiresMark: 100 }) => ({ scope, payloadHash: "h", ...marks });
const times = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));

describe("createPostgresStore", () => {
  const url = postgres();
  const open: { close(): Promise<unknown> }[] = [];
  const create = (schema: string, address = url): PostgresStore => {
    const store = createPostgresStore({ url: address, schema, connections: 4 });
    open.push(store);
    return store;
  };
  const sql = async (text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> => {
    const pool = createPool({ connectionString: url });
    try {
      return (await pool.query(text, values)).rows as Record<string, unknown>[];
    } finally {
      await pool.end();
    }
  };
  afterEach(async () => {
    for (const one of open.splice(0).reverse()) await one.close();
  });

  it("refuses a wrong address and names that may not be names, and shows no password", async () => {
    const refused = (options: object, pattern: RegExp) =>
      refuses(async () => createPostgresStore(options as never), "config.invalid", pattern);
    await refused({ url: "mysql://user:3141592@host" }, /^((?!3141592).)*postgres:\/\/((?!3141592).)*$/);
    await refused({}, /"url"/);
    await refused({ url, schema: 'x"; DROP' }, /schema: expected a name/);
    await refused({ url, schema: "pg_x" }, /schema: expected a name/);
    await refused({ url, connections: 0 }, /connections: expected a whole number from 1/);
    await refused({ url, conections: 1 }, /Did you mean connections\?/);
    const store = create("x", "postgres://user:3141592@127.0.0.1:1/db");
    await refuses(
      store.open(),
      "config.invalid",
      /^((?!3141592).)*postgres:\/\/127.0.0.1:1\/db: .*ECONNREFUSED((?!3141592).)*$/,
    );
    await refusesHook(store.getRun("r1"), "store_unavailable");
  });

  it("shows no piece of a password that the driver takes for a host or a database", async () => {
    // user 127.0.0.1, password 1/3141592: to the driver port 1 and a database
    const store = create("x", "postgres://127.0.0.1:1/3141592@localhost/db");
    await refuses(
      store.open(),
      "config.invalid",
      /^Cannot open the PostgreSQL store at the configured address: ECONNREFUSED\.$/,
    );
    const token = create("x", url.replace("latentkit@", "t3141592@"));
    await refuses(token.open(), "config.invalid", /^((?!3141592).)*role "…" does not exist\.$/);
    const error = await token.getRun("r1").catch((thrown: unknown) => thrown);
    assert.doesNotMatch(inspect(error, { depth: 9 }), /3141592/);
  });

  it("says what to install where pg is missing", async () => {
    const load = (): never => {
      throw new Error("Cannot find module 'pg'");
    };
    await refuses(async () => createPool({}, load), "config.invalid", /needs the package pg: run "npm install pg@8"/);
  });

  it("takes any text in ids, names and sessions", async () => {
    const store = create(newSchema());
    for (const text of ["\0", "\ud800", '"\\u0000', "é\n", "\\"]) {
      assert.equal(await store.getRun(text), null);
      await store.createRun(newRun(text, { sessionKey: text, name: text }), key(text));
      assert.equal((await store.getRun(text))?.message, text);
      assert.equal((await store.findReply(text, 0))?.payloadHash, "h");
      await startNext(store, text, 1);
      const file = { name: text, path: text, contentType: text };
      await store.append(text, { ...NO_EVENTS, files: [file, file] }, KEEP);
      assert.deepEqual(await store.getFile(text, text), file);
      assert.deepEqual((await store.getStatus(text, 9))?.files, [file]);
    }
  });

  it("gives one run to a hundred starts with one key from several processes", async () => {
    const schema = newSchema();
    const stores = times(4, () => create(schema));
    const results = await Promise.all(
      times(100, (i) => stores[i % 4]!.createRun(newRun(`r${i}`, { sessionKey: `hook:${i % 7}` }), key("k"))),
    );
    assert.equal(results.filter(({ kind }) => kind === "created").length, 1);
    assert.equal(results.filter(({ kind }) => kind === "replayed").length, 99);
    assert.equal((await stores[0]!.listRuns(null, 1000)).length, 1);
  });

  it("an expired key is taken by one of many starts", async () => {
    const schema = newSchema();
    const stores = times(4, () => create(schema));
    await stores[0]!.createRun(newRun("old"), key("k"));
    const later = { nowMark: 100, expiresMark: 200 };
    const results = await Promise.all(
      times(20, (i) => stores[i % 4]!.createRun(newRun(`r${i}`, { sessionKey: `hook:${i}` }), key("k", later))),
    );
    assert.equal(results.filter(({ kind }) => kind === "created").length, 1);
  });

  it("creates the runs of a session in the order of the calls", async () => {
    const store = create(newSchema());
    const ids = times(40, (i) => `r${i}`);
    await Promise.all(ids.map((id) => store.createRun(newRun(id))));
    assert.deepEqual((await store.listRuns(null, 100)).map(({ id }) => id).reverse(), ids);
  });

  it("loses no wake and takes each once, while several processes queue and start", async () => {
    const schema = newSchema();
    const stores = times(4, () => create(schema));
    const texts = times(80, (i) => `w${i}`);
    const limits = wakeLimits(1000);
    await Promise.all(
      texts.flatMap((text, i) => {
        const store = stores[i % 4]!;
        const sessionKey = `hook:${i % 3}`;
        const wake = store.addWake({ sessionKey, text, limits });
        return i % 4 === 0 ? [wake, store.createRun(newRun(`r${i}`, { sessionKey }))] : [wake];
      }),
    );
    for (const i of [0, 1, 2]) await stores[i]!.createRun(newRun(`last${i}`, { sessionKey: `hook:${i}` }));
    const ids = (await stores[0]!.listRuns(null, 1000)).map(({ id }) => id);
    const messages = await Promise.all(ids.map(async (id) => (await stores[0]!.getRun(id))!.message));
    const taken = messages.flatMap((message) => message.split("|")).filter((text) => text.startsWith("w"));
    assert.deepEqual(taken.sort(), texts.sort());
    assert.deepEqual(await sql(`SELECT wakes, bytes FROM ${schema}.backlog`), [{ wakes: 0, bytes: 0 }]);
  });

  it("keeps the session of a run that is created while its last one is swept", async () => {
    const schema = newSchema();
    const stores = times(3, () => create(schema));
    const ending = { from: ["running"], to: "succeeded", finishedAt: 1, endedMark: 1, error: null } as const;
    const terminal = { event: "done", data: "{}" };
    for (let round = 0; round < 15; round++) {
      const id = `r${round}`;
      const sessionKey = `hook:${round}`;
      await stores[0]!.createRun(newRun(id, { sessionKey }));
      await stores[0]!.claim(claimOf());
      await stores[0]!.endRun(id, { ...ending, terminal }, NO_EVENTS, KEEP);
      const request = { endedBefore: 1, maxEndedRuns: 0, maxEndedDeliveries: 0, nowMark: 0, budget: 1000 };
      const [swept] = await Promise.all([
        stores[1]!.sweep(request),
        stores[2]!.sweep(request),
        stores[0]!.createRun(newRun(`next${round}`, { sessionKey })),
      ]);
      assert.ok(swept.removedRuns <= 1);
      assert.equal((await stores[0]!.getRun(`next${round}`))?.sessionKey, sessionKey);
    }
  });

  it("fails with store_unavailable while the connection is lost, and recovers", async () => {
    const proxy = await startProxy(url);
    open.push(proxy);
    const store = create(newSchema(), proxy.url);
    await store.createRun(newRun("r1"));
    // idle connections break unnoticed: the next call makes another one
    proxy.cut();
    await store.ping();
    await proxy.stop();
    await refusesHook(store.createRun(newRun("r2")), "store_unavailable");
    await refusesHook(store.getRun("r1"), "store_unavailable");
    await refusesHook(store.ping(), "store_unavailable");
    await proxy.start();
    await store.ping();
    assert.equal(await store.getRun("r2"), null);
    assert.equal((await store.createRun(newRun("r2"))).kind, "created");
  });

  it("fails with store_unavailable where the server hangs, and recovers @long", async () => {
    const proxy = await startProxy(url);
    open.push(proxy);
    const store = create(newSchema(), proxy.url);
    await store.createRun(newRun("r1"));
    await startNext(store, "r1", 1);
    proxy.freeze(true);
    await Promise.all([
      refusesHook(store.createRun(newRun("r2")), "store_unavailable"),
      refusesHook(store.append("r1", { ...NO_EVENTS, events: [started] }, KEEP), "store_unavailable"),
      refusesHook(store.getRun("r1"), "store_unavailable"),
      refusesHook(store.ping(), "store_unavailable"),
    ]);
    proxy.freeze(false);
    assert.equal(await store.getRun("r2"), null);
    assert.equal((await store.getRun("r1"))?.lastEventId, 1);
    assert.equal((await store.createRun(newRun("r2"))).kind, "created");
  });

  it("undoes a transaction that is cut off at any statement", async () => {
    const proxy = await startProxy(url);
    open.push(proxy);
    const schema = newSchema();
    const store = create(schema, proxy.url);
    await store.open();
    await store.addWake({ sessionKey: "hook:a", text: "w", limits: wakeLimits(9) });
    let created = 0;
    for (let statement = 1; statement < 20 && created === 0; statement++) {
      proxy.cutAfter(statement);
      const result = await store.createRun(newRun("r1"), key("k")).catch(() => undefined);
      proxy.cutAfter(Number.POSITIVE_INFINITY);
      // a commit whose answer was lost may have happened: a client that tries again with its key learns it
      const run = await store.getRun("r1");
      const reply = await store.findReply("k", 0);
      assert.equal(run === null, reply === null, `cut after statement ${statement}`);
      assert.deepEqual(await store.pendingSessions(), run === null ? ["hook:a"] : []);
      if (run !== null) created = statement;
      if (result !== undefined) assert.equal(result.kind, "created");
    }
    assert.ok(created > 5, `created at statement ${created}`);
  });

  it("closes twice, and refuses work then", async () => {
    const store = create(newSchema());
    await store.open();
    await store.close();
    await store.close();
    await refusesHook(store.getRun("r1"), "store_unavailable");
  });
});

describe("work in order", () => {
  /** Work that ends when it is told to. */
  const inOrder = () => {
    const order = new InOrder();
    const begun: string[] = [];
    const ends = new Map<string, () => void>();
    const work = (name: string) => () => {
      begun.push(name);
      return new Promise<void>((resolve) => ends.set(name, resolve));
    };
    const end = async (name: string) => {
      ends.get(name)!();
      await turn();
    };
    return { order, begun, work, end };
  };

  it("of one key follows in the order of the calls, after a failure too; that of others runs beside it", async () => {
    const { order, begun, work, end } = inOrder();
    const failed = assert.rejects(order.run(["a"], () => Promise.reject(new Error("x"))));
    const all = [order.run(["a"], work("a2")), order.run(["a"], work("a3")), order.run(["b"], work("b1"))];
    await failed;
    await turn();
    assert.deepEqual(begun.sort(), ["a2", "b1"]);
    await end("a2");
    assert.equal(begun.at(-1), "a3");
    for (const name of ["a3", "b1"]) await end(name);
    await Promise.all(all);
  });

  it("of several keys waits for what came before it in any, and holds back what comes after it in any", async () => {
    const { order, begun, work, end } = inOrder();
    const all = [order.run(["a"], work("a")), order.run(["b"], work("b"))];
    all.push(order.run(["a", "b", "c"], work("abc")), order.run(["c"], work("c")));
    await turn();
    assert.deepEqual(begun, ["a", "b"]);
    await end("b");
    assert.deepEqual(begun, ["a", "b"]);
    await end("a");
    assert.deepEqual(begun, ["a", "b", "abc"]);
    await end("abc");
    assert.deepEqual(begun, ["a", "b", "abc", "c"]);
    await end("c");
    await Promise.all(all);
  });
});
