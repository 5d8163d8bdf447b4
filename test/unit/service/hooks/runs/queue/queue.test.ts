import assert from "node:assert/strict";
import { FakeClock, turns } from "../../../../../helpers/hooks/fake-clock.js";
import {
  assertEnded,
  closeNow,
  engine,
  refusesHook,
  request,
  startRun,
} from "../../../../../helpers/hooks/hook-runs.js";
import { describeStores } from "../../../../../helpers/hooks/hook-stores.js";

const MINUTE = 60_000;

describeStores({ title: "run queue", isLocal: true }, (kind) => {
  describe("priority", () => {
    it("starts runs of a higher one first, and keeps a session's order", async () => {
      const { runs, script, store, options } = engine(kind, { limits: { running: 1 } });
      const first = await startRun(runs, { sessionKey: "hook:first" });
      await script.call(first);
      const low = await startRun(runs, { sessionKey: "hook:low", priority: -1 });
      const a1 = await startRun(runs, { sessionKey: "hook:a" });
      const a2 = await startRun(runs, { sessionKey: "hook:a", priority: 100 });
      const high = await startRun(runs, { sessionKey: "hook:high", priority: 1 });
      const position = async (id: string) => (await runs.status(id)).queuePosition;
      assert.deepEqual([await position(high), await position(a1), await position(low)], [2, 3, 4]);
      for (const id of [first, high, a1, a2, low]) {
        const call = await script.call(id);
        call.succeed(id);
        await assertEnded(runs, id, "succeeded");
      }
      assert.deepEqual(
        script.calls.map(({ run }) => run.id),
        [first, high, a1, a2, low],
      );
      assert.equal(options.limits.running, 1);
      assert.equal((await store.getSummary(high))?.priority, 1);
      await runs.close();
    });

    it("the wait of the oldest run that waits is known, whichever has started", async () => {
      const { runs, script, clock } = engine(kind, { limits: { running: 1 } });
      const first = await startRun(runs, { sessionKey: "hook:a" });
      await script.call(first);
      const second = await startRun(runs, { sessionKey: "hook:b" });
      await clock.advance(MINUTE);
      const third = await startRun(runs, { sessionKey: "hook:c" });
      await clock.advance(1000);
      assert.equal(runs.stats().waitedMs, MINUTE + 1000);
      (await script.call(first)).succeed("");
      (await script.call(second)).succeed("");
      await script.call(third);
      assert.equal(runs.stats().waitedMs, 0);
      const fourth = await startRun(runs, { sessionKey: "hook:d" });
      await clock.advance(500);
      assert.equal(runs.stats().waitedMs, 500);
      assert.equal((await runs.get(fourth)).state, "queued");
      await closeNow(runs, clock);
    });

    it("outlives a restart", async () => {
      const before = engine(kind, { limits: { running: 1 } });
      const held = await startRun(before.runs, { sessionKey: "hook:held" });
      await before.script.call(held);
      const low = await startRun(before.runs, { sessionKey: "hook:a" });
      const high = await startRun(before.runs, { sessionKey: "hook:b", priority: 9 });
      await closeNow(before.runs, before.clock);
      const { runs, script } = engine(kind, { store: await kind.reopen(before.store), limits: { running: 1 } });
      (await script.call(high)).succeed("");
      (await script.call(low)).succeed("");
      await assertEnded(runs, low, "succeeded");
      assert.deepEqual(
        script.calls.map(({ run }) => run.id),
        [high, low],
      );
      await runs.close();
    });

    it("out of range is refused", async () => {
      const { runs } = engine(kind);
      for (const priority of [-101, 101, 0.5, Number.NaN]) {
        await refusesHook(runs.start(request({ priority })), "invalid_request");
      }
      await turns();
      await runs.close();
    });
  });

  describe("a pause", () => {
    it("lets no run start, whatever ends, until it is over; running ones go on", async () => {
      const { runs, script } = engine(kind, { limits: { running: 1 } });
      assert.equal(await runs.isPaused(), false);
      const first = await startRun(runs, { sessionKey: "hook:a" });
      const call = await script.call(first);
      await runs.setPaused(true);
      const second = await startRun(runs, { sessionKey: "hook:b" });
      call.succeed("");
      await assertEnded(runs, first, "succeeded");
      await turns();
      assert.equal((await runs.get(second)).state, "queued");
      assert.equal(await runs.isPaused(), true);
      await runs.setPaused(false);
      (await script.call(second)).succeed("");
      await assertEnded(runs, second, "succeeded");
      await runs.close();
    });

    it("outlives a restart; then a run still expires, and counts as queued", async () => {
      const before = engine(kind);
      await before.runs.setPaused(true);
      await closeNow(before.runs, before.clock);
      const limits = { queued: 1, queue_seconds: 60 };
      const { runs, script, clock } = engine(kind, { store: await kind.reopen(before.store), limits });
      const id = await startRun(runs);
      await refusesHook(runs.start(request({ sessionKey: "hook:other" })), "queue_full");
      await clock.advance(MINUTE);
      await assertEnded(runs, id, "expired");
      assert.equal(script.calls.length, 0);
      await closeNow(runs, clock);
    });
  });

  describe("a delay", () => {
    it("holds a run and its session, and nothing else", async () => {
      const { runs, script, clock } = engine(kind);
      const delayed = await startRun(runs, { sessionKey: "hook:a", delaySeconds: 60 });
      const behind = await startRun(runs, { sessionKey: "hook:a" });
      const other = await startRun(runs, { sessionKey: "hook:b" });
      (await script.call(other)).succeed("");
      await assertEnded(runs, other, "succeeded");
      await clock.advance(MINUTE - 1);
      assert.equal((await runs.get(delayed)).state, "queued");
      assert.equal(runs.stats().waitedMs, MINUTE - 1);
      await clock.advance(1);
      (await script.call(delayed)).succeed("");
      (await script.call(behind)).succeed("");
      await assertEnded(runs, behind, "succeeded");
      assert.equal((await runs.get(delayed)).startedAt, (await runs.get(delayed)).createdAt + MINUTE);
      await runs.close();
    });

    it("is over at its time after a restart, early or late", async () => {
      const before = engine(kind);
      const soon = await startRun(before.runs, { sessionKey: "hook:a", delaySeconds: 60 });
      const late = await startRun(before.runs, { sessionKey: "hook:b", delaySeconds: 600 });
      const { createdAt } = await before.runs.get(late);
      await closeNow(before.runs, before.clock);
      const clock = new FakeClock(createdAt + 2 * MINUTE);
      const { runs, script } = engine(kind, { store: await kind.reopen(before.store), clock });
      (await script.call(soon)).succeed("");
      await assertEnded(runs, soon, "succeeded");
      await clock.advance(7 * MINUTE);
      assert.equal((await runs.get(late)).state, "queued");
      await clock.advance(2 * MINUTE);
      (await script.call(late)).succeed("");
      await assertEnded(runs, late, "succeeded");
      await runs.close();
    });

    it("comes before the time in the queue, and does not take a slot of it for nothing", async () => {
      const limits = { running: 1, queued: 1, queue_seconds: 60 };
      const { runs, script, clock } = engine(kind, { limits });
      const delayed = await startRun(runs, { sessionKey: "hook:a", delaySeconds: 1800 });
      await refusesHook(runs.start(request({ sessionKey: "hook:b", delaySeconds: 1 })), "queue_full");
      const held = await startRun(runs, { sessionKey: "hook:c", timeoutSeconds: 3600 });
      await script.call(held);
      await clock.advance(31 * MINUTE - 1);
      assert.equal((await runs.get(delayed)).state, "queued");
      assert.equal(Math.round(runs.stats().waitedMs), MINUTE - 1);
      await clock.advance(1);
      assert.equal((await assertEnded(runs, delayed, "expired")).code, "expired");
      await closeNow(runs, clock);
    });

    it("of a cancelled run holds nobody", async () => {
      const { runs, script } = engine(kind);
      const delayed = await startRun(runs, { delaySeconds: 60 });
      const behind = await startRun(runs);
      await runs.cancel(delayed);
      (await script.call(behind)).succeed("");
      await assertEnded(runs, behind, "succeeded");
      await runs.close();
    });
  });

  describe("a deadline", () => {
    it("ends a run that waits as expired, and a running one as timed out", async () => {
      const { runs, script, clock } = engine(kind);
      const running = await startRun(runs, { deadlineSeconds: 60 });
      const waiting = await startRun(runs, { deadlineSeconds: 30 });
      const { signal } = (await script.call(running)).context;
      await clock.advance(30_000);
      const error = await assertEnded(runs, waiting, "expired");
      const at = new Date((await runs.get(waiting)).deadlineMark!).toISOString();
      assert.deepEqual(error, { error: `The run did not end by its deadline, ${at}.`, code: "deadline_exceeded" });
      assert.equal((await runs.get(running)).state, "running");
      await clock.advance(30_000);
      assert.equal((await assertEnded(runs, running, "timed_out")).code, "deadline_exceeded");
      assert.equal(signal.aborted, true);
      await closeNow(runs, clock);
    });

    it("leaves the time of a run that ends sooner", async () => {
      const { runs, script, clock } = engine(kind);
      const id = await startRun(runs, { deadlineSeconds: 60, timeoutSeconds: 10 });
      await script.call(id);
      await clock.advance(10_000);
      assert.equal((await assertEnded(runs, id, "timed_out")).code, "timed_out");
      await closeNow(runs, clock);
    });

    it("that passed while no process ran ends the run after the restart", async () => {
      const before = engine(kind, { limits: { running: 1 } });
      await before.script.call(await startRun(before.runs, { sessionKey: "hook:held" }));
      const id = await startRun(before.runs, { sessionKey: "hook:a", deadlineSeconds: 60 });
      await closeNow(before.runs, before.clock);
      const clock = new FakeClock(before.clock.now() + 2 * MINUTE);
      const { runs, script } = engine(kind, { store: await kind.reopen(before.store), clock });
      await runs.get(id);
      await clock.advance(0);
      assert.equal((await assertEnded(runs, id, "expired")).code, "deadline_exceeded");
      assert.deepEqual(script.calls, []);
      await runs.close();
    });
  });

  it("refuses terms out of range", async () => {
    const { runs } = engine(kind);
    const long = 604_801;
    for (const terms of [
      { delaySeconds: -1 },
      { delaySeconds: long },
      { delaySeconds: Number.NaN },
      { deadlineSeconds: 0 },
      { deadlineSeconds: long },
      { delaySeconds: 10, deadlineSeconds: 10 },
      { tags: [""] },
      { tags: ["\ud800"] },
      { tags: ["a\u0000"] },
      { tags: Array.from({ length: 17 }, (_, n) => `t${n}`) },
    ]) {
      await refusesHook(runs.start(request(terms)), "invalid_request");
    }
    await runs.close();
  });
});
