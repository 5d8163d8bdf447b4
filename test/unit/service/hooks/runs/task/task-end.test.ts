import assert from "node:assert/strict";
import { LatentkitError } from "latentkit";
import { cancelled, failed, interrupted, returned, timedOut } from "#src/service/hooks/runs/outcome.js";
import { TaskEnd } from "#src/service/hooks/runs/task/task-end.js";
import { FakeClock } from "../../../../../helpers/hooks/fake-clock.js";
import {
  allEvents,
  assertEnded,
  closeNow,
  engine,
  retryPolicy,
  startRun,
  until,
} from "../../../../../helpers/hooks/hook-runs.js";
import { describeStores } from "../../../../../helpers/hooks/hook-stores.js";

describe("end of a task", () => {
  const open = () => {
    let ends = 0;
    const end = new TaskEnd(() => ends++);
    return { end, ends: () => ends };
  };
  const done = returned({ response: "ok" }, 100);

  for (const [event, outcome, aborts] of [
    ["returned", done, false],
    ["thrown", failed(new Error("x")), false],
    ["timeUp", timedOut(1), true],
    ["cut", cancelled(null), true],
    ["fileLost", failed(new Error("x")), true],
    ["endedElsewhere", interrupted(), true],
  ] as const) {
    it(`${event} while the agent works: its outcome, ${aborts ? "and" : "without"} an abort`, async () => {
      const { end, ends } = open();
      assert.deepEqual([end.isSettled, end.signal.aborted], [false, false]);
      assert.equal(end.take(event, outcome), true);
      assert.equal(await end.outcome, outcome);
      assert.deepEqual([end.isSettled, end.signal.aborted, end.late, ends()], [true, aborts, undefined, 1]);
    });

    it(`${event} after the agent: the outcome stays`, async () => {
      const { end, ends } = open();
      end.take("returned", done);
      assert.equal(end.take(event, outcome), false);
      assert.equal(await end.outcome, done);
      const stops = event === "cut" || event === "fileLost";
      assert.deepEqual([end.signal.aborted, ends()], [stops, 1]);
      assert.equal(end.late, event === "cut" ? outcome : undefined);
    });
  }

  it("of several late cuts the first counts", () => {
    const { end } = open();
    for (const outcome of [done, cancelled(null), interrupted()]) end.take("cut", outcome);
    assert.equal(end.late?.state, "cancelled");
  });

  it("an abort says why", () => {
    const [cut, lost] = [open().end, open().end];
    cut.take("cut", cancelled(null));
    lost.take("fileLost", failed(new Error("x")));
    assert.match(String(cut.signal.reason), /AbortError: The run was ended \(cancelled\)\./);
    assert.match(String(lost.signal.reason), /AbortError: A file of the run could not be stored\./);
  });
});

const transient = (message = "busy") => Object.assign(new Error(message), { retryable: true });

describeStores({ title: "retries", isLocal: true }, (kind) => {
  it("run a transient failure again after a delay, in one stream with one end", async () => {
    const retried: unknown[] = [];
    const finished: unknown[] = [];
    const observer = {
      retried: (run: unknown) => retried.push(run),
      finished: ({ state }: { state: unknown }) => finished.push(state),
    };
    const { runs, script, clock } = engine(kind, { observer });
    const id = await startRun(runs);
    const behind = await startRun(runs);
    const first = await script.call(id);
    first.context.emit("delta", { delta: "half" });
    const file = first.context.addFile({ path: "/tmp/half.png" });
    first.fail(transient());
    await until(async () => (await runs.get(id)).attempt === 2, "the next attempt");
    assert.equal((await runs.get(id)).state, "queued");
    await assert.rejects(runs.file(id, file.name), /no such file/);
    await clock.advance(4999);
    assert.equal(script.calls.length, 1);
    await clock.advance(1);
    await until(() => script.calls.length === 2, "the second call");
    const second = await script.call(id);
    assert.equal(second.run.attempt, 2);
    second.fail(transient("still busy"));
    await until(async () => (await runs.get(id)).attempt === 3, "the third attempt");
    await clock.advance(10_000);
    await until(() => script.calls.length === 3, "the third call");
    (await script.call(id)).succeed("at last");
    await assertEnded(runs, id, "succeeded");
    assert.deepEqual(
      (await allEvents(runs, id)).map(({ event, data }) => [event, JSON.parse(data)]),
      [
        ["status", { message: "The run has started.", state: "running" }],
        ["delta", { delta: "half" }],
        ["retry", { attempt: 2, delay_seconds: 5, error: "busy", code: "agent_failed" }],
        ["status", { message: "The run has started.", state: "running" }],
        ["retry", { attempt: 3, delay_seconds: 10, error: "still busy", code: "agent_failed" }],
        ["status", { message: "The run has started.", state: "running" }],
        ["done", { response: "at last" }],
      ],
    );
    assert.deepEqual(
      [retried, finished],
      [
        [
          { id, attempt: 1 },
          { id, attempt: 2 },
        ],
        ["succeeded"],
      ],
    );
    assert.equal((await script.call(behind)).run.id, behind);
    await closeNow(runs, clock);
  });

  it("end with the last attempt's error", async () => {
    const { runs, script, clock } = engine(kind);
    const id = await startRun(runs);
    for (let attempt = 1; attempt <= 3; attempt++) {
      await until(() => script.calls.length === attempt, `attempt ${attempt}`);
      (await script.call(id)).fail(transient(`failure ${attempt}`));
      if (attempt < 3) await until(async () => (await runs.get(id)).attempt === attempt + 1, "the retry");
      if (attempt < 3) await clock.advance(10_000);
    }
    assert.deepEqual(await assertEnded(runs, id, "failed"), { error: "failure 3", code: "agent_failed" });
    await closeNow(runs, clock);
  });

  it("are for transient errors: by their own word, or by the code that the policy names", async () => {
    const trap = (): never => {
      throw new Error("trap");
    };
    const hostile = new Proxy({}, { get: trap, getPrototypeOf: trap, has: trap, ownKeys: trap });
    let sessions = 0;
    const remote = new LatentkitError("remote.failed", "The service is down.");
    for (const [error, isTransient] of [
      [new Error("plain"), false],
      [Object.assign(new Error("text"), { retryable: "true" }), false],
      [null, false],
      [hostile, false],
      [new LatentkitError("node.failed", "No."), false],
      [remote, true],
      [{ retryable: true }, true],
    ] as const) {
      const { runs, script, clock } = engine(kind, { retries: retryPolicy("remote.failed") });
      // the last one may wait in a store that is opened again
      const id = await startRun(runs, { sessionKey: `hook:${sessions++}` });
      (await script.call(id)).fail(error);
      if (isTransient) await until(async () => (await runs.get(id)).attempt === 2, "the retry");
      else await assertEnded(runs, id, "failed");
      await closeNow(runs, clock);
    }
  });

  it("that would start at the deadline or later do not happen", async () => {
    const { runs, script, clock } = engine(kind);
    const id = await startRun(runs, { deadlineSeconds: 5 });
    (await script.call(id)).fail(transient());
    assert.equal((await assertEnded(runs, id, "failed")).code, "agent_failed");
    await closeNow(runs, clock);
  });

  it("can be cancelled while they wait, and the next run of the session starts", async () => {
    const { runs, script, clock } = engine(kind);
    const id = await startRun(runs);
    const behind = await startRun(runs);
    (await script.call(id)).fail(transient());
    await until(async () => (await runs.get(id)).attempt === 2, "the retry");
    assert.equal((await runs.cancel(id)).state, "cancelled");
    await assertEnded(runs, id, "cancelled");
    (await script.call(behind)).succeed("");
    await assertEnded(runs, behind, "succeeded");
    await closeNow(runs, clock);
  });

  it("a cancel that comes with the failure wins, at whatever moment", async () => {
    for (let turns = 0; turns < 12; turns++) {
      const { runs, script, clock } = engine(kind);
      const id = await startRun(runs);
      (await script.call(id)).fail(transient());
      for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
      assert.equal((await runs.cancel(id)).state, "cancelled", `after ${turns} turns`);
      await assertEnded(runs, id, "cancelled");
      await closeNow(runs, clock);
    }
  });

  it("outlive a restart, with their number and their delay", async () => {
    const before = engine(kind);
    const id = await startRun(before.runs);
    (await before.script.call(id)).fail(transient());
    await until(async () => (await before.runs.get(id)).attempt === 2, "the retry");
    await closeNow(before.runs, before.clock);
    const store = await kind.reopen(before.store);
    const clock = new FakeClock(before.clock.now() + 7200_000);
    const { runs, script } = engine(kind, { store, clock });
    const call = await script.call(id);
    assert.equal(call.run.attempt, 2);
    call.succeed("");
    await assertEnded(runs, id, "succeeded");
    await closeNow(runs, clock);
  });
});
