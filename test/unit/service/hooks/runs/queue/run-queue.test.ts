import assert from "node:assert/strict";
import { turns } from "../../../../../helpers/hooks/fake-clock.js";
import {
  assertEnded,
  closeNow,
  engine,
  refusesHook,
  request,
  startRun,
} from "../../../../../helpers/hooks/hook-runs.js";
import { describeStores } from "../../../../../helpers/hooks/hook-stores.js";

describeStores({ title: "run queue", network: "@long" }, (kind) => {
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
});
