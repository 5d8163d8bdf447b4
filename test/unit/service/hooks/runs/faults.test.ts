import assert from "node:assert/strict";
import { join } from "node:path";
import type { Agent } from "#src/service/agent/agent.js";
import { createSqliteStore } from "#src/service/hooks/store/sqlite/sqlite-store.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { turns } from "../../../../helpers/hooks/fake-clock.js";
import { failWrites, faultyDriver } from "../../../../helpers/hooks/faulty-driver.js";
import {
  allEvents,
  assertEnded,
  closeNow,
  engine,
  refusesHook,
  request,
  startRun,
  until,
} from "../../../../helpers/hooks/hook-runs.js";

const echo: Agent = async ({ message }) => ({ response: message });

describe("runs on a failing disk", () => {
  const folder = temporaryFolder();
  const failing = (overrides: Parameters<typeof engine>[1] = {}) => {
    const driver = faultyDriver();
    const store = createSqliteStore(join(folder(), "store.db"), { driver });
    const disk = { isFull: false };
    failWrites(driver, () => disk.isFull);
    const kind = { name: "faulty", create: () => store, reopen: async () => store };
    return { ...engine(kind, overrides), disk, driver };
  };

  it("a full disk: 503, no start without its row, recovers with room", async () => {
    const { runs, disk, clock } = failing({ agent: echo });
    disk.isFull = true;
    const refusal = await refusesHook(runs.start(request()), "store_unavailable");
    assert.deepEqual([refusal.status, refusal.code], [503, "internal"]);
    await refusesHook(runs.queueWake({ sessionKey: "hook:a", text: "x" }), "store_unavailable");
    await refusesHook(runs.ping(), "store_unavailable");
    assert.deepEqual((await runs.list({ limit: 10 })).runs, []);
    assert.deepEqual({ ...runs.stats(), waitedMs: 0 }, { queued: 0, running: 0, followed: 0, waitedMs: 0 });
    disk.isFull = false;
    await runs.ping();
    await assertEnded(runs, await startRun(runs), "succeeded");
    await closeNow(runs, clock);
  });

  it("a start that cannot be committed releases its reservation", async () => {
    const { runs, disk, clock } = failing({ agent: echo, limits: { queued_per_session: 0 } });
    disk.isFull = true;
    for (let i = 0; i < 5; i++) await refusesHook(runs.start(request()), "store_unavailable");
    disk.isFull = false;
    await assertEnded(runs, await startRun(runs), "succeeded");
    await closeNow(runs, clock);
  });

  it("a queued run that cannot start is started later, in order", async () => {
    const { runs, disk, clock, script } = failing();
    const [first, second] = await Promise.all([startRun(runs), startRun(runs)]);
    disk.isFull = true;
    await turns();
    assert.deepEqual({ ...runs.stats(), waitedMs: 0 }, { queued: 2, running: 0, followed: 0, waitedMs: 0 });
    await clock.advance(5000);
    assert.equal(script.calls.length, 0);
    disk.isFull = false;
    await clock.advance(1000);
    (await script.call(first)).succeed("ok");
    (await script.call(second)).succeed("ok");
    await assertEnded(runs, first, "succeeded");
    await assertEnded(runs, second, "succeeded");
    assert.deepEqual(
      script.calls.map(({ run }) => run.id),
      [first, second],
    );
    await closeNow(runs, clock);
  });

  it("events wait until they can be stored: none lost, none twice", async () => {
    const { runs, disk, clock, script, faults } = failing();
    const id = await startRun(runs);
    const { context, succeed } = await script.call(id);
    for (let round = 0; round < 6; round++) {
      disk.isFull = round % 2 === 1;
      for (let i = 0; i < 700; i++) context.emit("delta", { delta: `${round}.${i}` });
      await turns();
      await clock.advance(1000);
    }
    disk.isFull = false;
    await clock.advance(1000);
    succeed("ok");
    await assertEnded(runs, id, "succeeded");
    const texts = (await allEvents(runs, id))
      .filter(({ event }) => event === "delta")
      .map(({ data }) => (JSON.parse(data) as { delta: string }).delta);
    const expected = Array.from({ length: 4200 }, (_, n) => `${Math.floor(n / 700)}.${n % 700}`);
    assert.deepEqual(texts, expected);
    assert.ok(faults.length > 0);
    await closeNow(runs, clock);
  });

  it("retries storing events once a second, not at each event", async () => {
    const { runs, disk, clock, script, faults } = failing();
    const id = await startRun(runs);
    const { context, succeed } = await script.call(id);
    disk.isFull = true;
    for (let i = 0; i < 100; i++) {
      context.emit("delta", { delta: String(i) });
      await turns(2);
    }
    assert.equal(faults.length, 1);
    disk.isFull = false;
    await clock.advance(1000);
    assert.equal((await runs.get(id)).lastEventId, 101);
    succeed("ok");
    await assertEnded(runs, id, "succeeded");
    await closeNow(runs, clock);
  });

  it("stores the one terminal event when there is room again", async () => {
    const { runs, disk, clock, script } = failing();
    const id = await startRun(runs);
    const { context, succeed } = await script.call(id);
    context.emit("delta", { delta: "a" });
    disk.isFull = true;
    succeed("ok");
    await clock.advance(3000);
    assert.equal((await runs.get(id)).state, "running");
    disk.isFull = false;
    await clock.advance(1000);
    await assertEnded(runs, id, "succeeded");
    assert.deepEqual(
      (await allEvents(runs, id)).map(({ event }) => event),
      ["status", "delta", "done"],
    );
    await closeNow(runs, clock);
  });

  it("a cancel that cannot be stored: 503, stored later", async () => {
    const { runs, disk, clock, script } = failing();
    const running = await startRun(runs);
    const queued = await startRun(runs);
    await script.call(running);
    disk.isFull = true;
    await refusesHook(runs.cancel(queued), "store_unavailable");
    await refusesHook(runs.cancel(running), "store_unavailable");
    assert.equal((await runs.get(queued)).state, "queued");
    disk.isFull = false;
    assert.equal((await runs.cancel(queued)).state, "cancelled");
    await clock.advance(1000);
    await assertEnded(runs, running, "cancelled");
    await closeNow(runs, clock);
  });

  it("closes in time on a full disk; the next start interrupts the run", async () => {
    const { runs, disk, clock, script, driver } = failing();
    const id = await startRun(runs);
    await script.call(id);
    disk.isFull = true;
    await closeNow(runs, clock);
    driver.before = () => undefined;
    const store = createSqliteStore(join(folder(), "store.db"));
    const again = engine({ name: "again", create: () => store, reopen: async () => store }, { agent: echo });
    await assertEnded(again.runs, id, "interrupted");
    await again.runs.close();
  });

  it("retries an expiry that failed", async () => {
    const { runs, disk, clock, script } = failing({ limits: { queue_seconds: 10 } });
    const first = await startRun(runs);
    const second = await startRun(runs);
    const { succeed } = await script.call(first);
    disk.isFull = true;
    await clock.advance(12_000);
    assert.equal((await runs.get(second)).state, "queued");
    disk.isFull = false;
    await clock.advance(2_000);
    await assertEnded(runs, second, "expired");
    succeed("ok");
    await until(() => runs.stats().running === 0, "the end");
    await closeNow(runs, clock);
  });
});
