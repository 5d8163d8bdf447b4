import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { createPostgresStore, type PostgresStore } from "#src/service/hooks/store/postgres/postgres-store.js";
import { NO_EVENTS } from "#src/service/hooks/store/queue-store.js";
import { claimOf } from "../../../../../helpers/hooks/claims.js";
import { until } from "../../../../../helpers/hooks/hook-runs.js";
import { newRun } from "../../../../../helpers/hooks/new-run.js";
import { newSchema, postgres } from "../../../../../helpers/postgres/cluster.js";
import { startProxy } from "../../../../../helpers/postgres/proxy.js";

const event = { event: "status", data: "{}" };
const KEEP = { events: 100, bytes: 1000 };

describe("listen of the PostgreSQL store", () => {
  const url = postgres();
  const open: { close(): Promise<unknown> }[] = [];
  const create = (schema: string, listenUrl?: string): PostgresStore => {
    const store = createPostgresStore({ url, schema, listenUrl });
    open.push(store);
    return store;
  };
  const add = (store: PostgresStore, id: string) =>
    store.createRun(newRun(id, { sessionKey: id, createdAt: 1, createdMark: 1 }));
  /** Hints that a listener has received; begins when it listens. */
  async function heard(store: PostgresStore): Promise<{ ids: (string | null)[]; end(): void }> {
    const ids: (string | null)[] = [];
    const end = store.listen((id) => ids.push(id));
    await until(() => ids.includes(null), "the connection");
    ids.splice(0);
    return { ids, end };
  }
  afterEach(async () => {
    for (const one of open.splice(0).reverse()) await one.close();
  });

  it("hears of every change of a run by other processes, until its end", async () => {
    const schema = newSchema();
    const [writer, reader, foreign] = [create(schema), create(schema), create(newSchema())];
    await Promise.all([writer.open(), foreign.open()]);
    const { ids, end } = await heard(reader);
    const ending = { from: ["running"], to: "succeeded", finishedAt: 1, endedMark: 1, error: null } as const;
    const id = "a\nb\ud800";
    const steps: (() => Promise<unknown>)[] = [
      () => add(writer, id),
      () => writer.claim(claimOf()),
      () => writer.append(id, { ...NO_EVENTS, events: [event] }, KEEP),
      () => writer.release(id, 1),
      () => writer.claim(claimOf()),
      () => writer.endRun(id, { ...ending, terminal: { event: "done", data: "{}" } }, NO_EVENTS, KEEP),
    ];
    for (const [i, step] of steps.entries()) {
      await add(foreign, `f${i}`);
      await step();
      await until(() => ids.length > 0, "a hint");
      assert.deepEqual([...new Set(ids.splice(0))], [id]);
    }
    await add(reader, "own");
    await sleep(50);
    await add(writer, "next");
    await until(() => ids.length > 0, "a hint");
    assert.deepEqual(ids.splice(0), ["next"]);
    end();
    await add(writer, "r2");
    await sleep(50);
    assert.deepEqual(ids, []);
  });

  it("more ids than a notification holds: any run may have changed", async () => {
    const schema = newSchema();
    const [writer, reader] = [create(schema), create(schema)];
    await writer.open();
    const { ids } = await heard(reader);
    for (let i = 0; i < 10; i++) await add(writer, `${i}-${"x".repeat(900)}`);
    // hints come in order: with that of the last run all of the starts are there
    for (let i = 0; ids.at(-1) !== `last${i - 1}`; i++) {
      ids.splice(0);
      await add(writer, `last${i}`);
      await until(() => ids.length > 0, "a hint");
    }
    ids.splice(0);
    const held = await writer.claim(claimOf({ count: 10 }));
    assert.equal(held.length, 10);
    await until(() => ids.length > 0, "a hint");
    assert.deepEqual(ids, [null]);
  });

  it("connects again after a loss, and says that any run may have changed", async () => {
    const schema = newSchema();
    const proxy = await startProxy(url);
    open.push(proxy);
    const [writer, reader] = [create(schema), create(schema, proxy.url)];
    await writer.open();
    const { ids } = await heard(reader);
    proxy.cut();
    await until(() => ids.includes(null), "the next connection");
    ids.splice(0);
    await add(writer, "r1");
    await until(() => ids.includes("r1"), "a hint");
  });
});
