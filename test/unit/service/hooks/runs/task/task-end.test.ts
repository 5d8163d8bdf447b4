import assert from "node:assert/strict";
import { cancelled, failed, interrupted, returned, timedOut } from "#src/service/hooks/runs/outcome.js";
import { TaskEnd } from "#src/service/hooks/runs/task/task-end.js";

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
