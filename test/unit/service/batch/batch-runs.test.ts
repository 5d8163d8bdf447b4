import assert from "node:assert/strict";
import { BatchRuns } from "#src/service/batch/batch-runs.js";
import { createPostgresStore } from "#src/service/hooks/store/postgres/postgres-store.js";
import type { SharedStore } from "#src/service/hooks/store/store.js";
import { refuses } from "../../../helpers/errors.js";
import { claimOf } from "../../../helpers/hooks/claims.js";
import { until } from "../../../helpers/hooks/hook-runs.js";
import { newRun } from "../../../helpers/hooks/new-run.js";
import { newSchema, postgres } from "../../../helpers/postgres/cluster.js";
import { startProxy } from "../../../helpers/postgres/proxy.js";

const LIMITS = { events: 100, bytes: 100_000 };
const NOTHING = { skip: 0, events: [], files: [] };

describe("runs of a batch", () => {
  const url = postgres();
  const open: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const part of open.splice(0).reverse()) await part.close();
  });
  const storeOf = (schema: string, address = url) => {
    const store = createPostgresStore({ url: address, schema, connections: 3 });
    open.push(store);
    return store;
  };
  const start = async (store: SharedStore, patienceMs?: number) => {
    const runs = new BatchRuns(store, { changed: () => undefined, patienceMs });
    await runs.open();
    open.push(runs);
    return runs;
  };
  const claim = (store: SharedStore) => store.claim(claimOf());
  const queued = async (store: SharedStore, sessionKey: string) =>
    until(async () => (await store.listRuns(null, 9, { sessionKey, state: "queued" })).length > 0, "the run");

  it("come after those of hooks, end with their response, and are listed by their session alone", async () => {
    const schema = newSchema();
    const store = storeOf(schema);
    const runs = await start(storeOf(schema));
    const end = runs.queue("batch-a-0", "the message");
    await queued(store, "batch-a-0");
    const common = { createdAt: 1, createdMark: 1 };
    await store.createRun(newRun("hook", { sessionKey: "s", ...common }));
    const [first, second] = await claim(store);
    assert.deepEqual([first?.run.id, second?.run.message], ["hook", "the message"]);
    assert.deepEqual(
      (await store.listRuns(null, 9)).map(({ id }) => id),
      ["hook"],
    );
    assert.equal((await store.countRuns(9)).queued, 0);
    const times = { finishedAt: 1, endedMark: 1, error: null };
    const terminal = { event: "done", data: '{"response":"r"}' };
    const ending = { from: ["running"], to: "succeeded", terminal, ...times } as const;
    await store.endRun(
      second!.run.id,
      { ...ending, receivers: [{ endpoint: "e", target: "t", sessionPrefix: "" }] },
      NOTHING,
      LIMITS,
    );
    assert.deepEqual(await end, { state: "succeeded", response: "r", pack: undefined, error: null });
    assert.equal(await store.countPendingDeliveries(9), 0);
    await runs.close();
    assert.equal(await store.getSummary(second!.run.id), null);
    assert.equal((await store.getSummary("hook"))?.state, "running");
  });

  it("are cancelled: the queued ones, then all, then what an earlier life has left", async () => {
    const schema = newSchema();
    const store = storeOf(schema);
    const runs = await start(storeOf(schema));
    const first = runs.queue("batch-a-0", "m");
    await queued(store, "batch-a-0");
    await claim(store);
    const second = runs.queue("batch-a-1", "m");
    await queued(store, "batch-a-1");
    await until(() => runs.running === 1, "the start");
    await runs.cancel(["queued"]);
    assert.equal((await second).state, "cancelled");
    await runs.cancel(["queued", "running"]);
    assert.equal((await first).state, "cancelled");
    const common = { createdAt: 1, createdMark: 1 };
    await store.createRun(newRun("old", { sessionKey: "batch-b-0", origin: "batch", ...common }));
    assert.equal(await runs.clear("batch-b-0"), null);
    assert.equal((await store.getSummary("old"))?.state, "cancelled");
  });

  it("outlive a store that is gone for a moment, and fail once it is gone for long", async () => {
    const schema = newSchema();
    const store = storeOf(schema);
    const proxy = await startProxy(url);
    open.push({ close: () => proxy.stop().catch(() => undefined) });
    const patient = await start(storeOf(schema, proxy.url));
    const hasty = await start(storeOf(schema, proxy.url), 0);
    const end = patient.queue("batch-a-0", "m");
    await queued(store, "batch-a-0");
    await proxy.stop();
    await refuses(
      hasty.queue("batch-b-0", "m"),
      "store.unavailable",
      /^Cannot reach the store .*\. Run the same command with --resume to continue\.$/,
    );
    const [held] = await claim(store);
    const terminal = { event: "error", data: "{}" };
    const error = { error: "it failed", code: "node.failed" };
    const ending = { from: ["running"], to: "failed", terminal, finishedAt: 1, endedMark: 1, error } as const;
    await store.endRun(held!.run.id, ending, NOTHING, LIMITS);
    await proxy.start();
    assert.deepEqual(await end, { state: "failed", response: undefined, pack: undefined, error });
  });
});
