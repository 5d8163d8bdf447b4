import assert from "node:assert/strict";
import { LatentkitError } from "#src/base/errors.js";
import { createBatchProgress, duration } from "#src/cli/batch/batch-report.js";
import type { Terminal } from "#src/cli/terminal.js";
import type { BatchEvent } from "#src/render/batch/events.js";

const start = (total?: number): BatchEvent => ({ type: "batch-start", at: 0, total, finished: 0, concurrency: 2 });
const done = (index: number): BatchEvent => ({ type: "item-done", at: 0, index, values: {}, files: [], ms: 1 });
const failed = (index: number, willRetry: boolean): BatchEvent => ({
  type: "item-failed",
  at: 0,
  index,
  values: {},
  files: [],
  error: new LatentkitError("node.failed", "No."),
  attempt: 1,
  willRetry,
});

/** Empties the line that a bar is on. */
const CLEAR = "\r\x1b[2K";

describe("progress of a batch", () => {
  let now = 0;
  let err = "";
  const told = () => err;
  const drawn = () => err.split(CLEAR);
  const make = (isTerminal: boolean, columns = 100) => {
    [now, err] = [5000, ""];
    const terminal: Terminal = {
      out: () => {},
      err: (text) => {
        err += text;
      },
      isTerminal,
      columns,
      color: false,
      env: {},
    };
    return createBatchProgress(terminal, () => now);
  };

  it("is one line every ten seconds without a terminal", () => {
    const progress = make(false);
    progress.show(start(1000));
    for (let i = 0; i < 100; i++) {
      now += 99;
      progress.show(done(i));
    }
    assert.equal(told(), "");
    now += 100;
    progress.show({ type: "item-skipped", at: 0, index: 100, values: {}, position: 100, files: [] });
    assert.equal(told(), "101 of 1000 done (10 %), 10 per second, 1 min 30 s left\n");
    progress.show(failed(101, true));
    now += 9_999;
    progress.show(failed(102, false));
    assert.equal(told().split("\n").length, 2);
    now += 1;
    progress.show(done(103));
    assert.equal(told().split("\n")[1], "103 of 1000 done (10 %), 5.1 per second, 2 min 56 s left, 1 failed");
    progress.end();
    assert.equal(told().split("\n").length, 3);
  });

  it("is a bar on a terminal, drawn again at most ten times a second", () => {
    const progress = make(true);
    progress.show(start(4));
    now += 1000;
    progress.show(done(0));
    progress.show(done(1));
    assert.equal(drawn().length, 3);
    now += 1000;
    progress.show(failed(2, false));
    assert.equal(drawn().at(-1), `${"█".repeat(18)}${"░".repeat(6)} 3/4  75 %  1.5/s  1 s left  1 failed`);
    progress.printAbove(() => {
      err += "words\n";
    });
    assert.deepEqual(
      drawn()
        .slice(-2)
        .map((text) => text.slice(0, 5)),
      ["words", "█████"],
    );
    progress.end();
    assert.ok(err.endsWith(CLEAR));
  });

  it("does without a total, and never wraps", () => {
    const open = make(true);
    open.show(start());
    now += 2000;
    open.show(done(0));
    assert.equal(drawn().at(-1), "1 done  2.0 s each");
    open.end();
    const narrow = make(true, 40);
    narrow.show(start(10_000));
    now += 2000;
    narrow.show(failed(0, false));
    assert.ok(drawn().every((line) => line.length < 40));
    narrow.end();
  });

  it("tells the pace of late, and is whole with the last item alone", () => {
    const progress = make(true);
    progress.show(start(1000));
    let index = 0;
    const at = (count: number, everyMs: number) => {
      for (let i = 0; i < count; i++) {
        now += everyMs;
        progress.show(done(index++));
      }
      return drawn()
        .at(-1)!
        .replace(/^[█░]+ /, "");
    };
    assert.equal(at(600, 100), "600/1000  60 %  10/s  40 s left");
    // the graph has become slow; one second of it changes little, a minute everything
    assert.match(at(1, 1000), /^601\/1000 {2}60 % {2}9\.\d\/s {2}4\d s left$/);
    assert.equal(at(60, 1000), "661/1000  66 %  1.0/s  5 min 39 s left");
    // twenty items at least, however long they take
    assert.equal(at(30, 60_000), "691/1000  69 %  1 min 0 s each  5 h 9 min left");
    at(307, 10);
    assert.match(at(1, 100), /^999\/1000 {2}99 % /);
    assert.match(at(1, 100), /^1000\/1000 {2}100 % .* 0 s left$/);
    progress.end();
  });

  it("prints durations in seconds, minutes and hours", () => {
    assert.deepEqual([0, 59.4, 59.6, 3599, 3600, 90_061].map(duration), [
      "0 s",
      "59 s",
      "1 min 0 s",
      "59 min 59 s",
      "1 h 0 min",
      "25 h 1 min",
    ]);
  });
});
