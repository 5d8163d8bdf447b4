import assert from "node:assert/strict";
import type { RunEvent } from "latentkit";
import { createProgress } from "#src/cli/commands/render.js";

function terminal(isTerminal: boolean, columns = 100) {
  const printed: string[] = [];
  const err = (text: string) => void printed.push(text);
  return { printed, out: err, err, isTerminal, columns, color: false, env: {} };
}

const at = 5000;
const started: RunEvent = { type: "node-start", nodeId: "3", displayId: "3", at };
const steps = (value: number): RunEvent => ({ type: "progress", nodeId: "3", value, max: 20, at: at + value * 100 });
const done: RunEvent = { type: "node-done", nodeId: "3", displayId: "3", outputs: [], ms: 2000, at: at + 2000 };
const label = (nodeId: string) => `${nodeId} KSampler`;

describe("progress of a run", () => {
  it("is a line for each node without a terminal, with steps and their rate", () => {
    const screen = terminal(false);
    const progress = createProgress(screen, label);
    for (const event of [started, steps(1), steps(20), done, { ...started, nodeId: "4" }, { ...done, nodeId: "4" }])
      progress.show(event);
    assert.deepEqual(screen.printed, ["3 KSampler: 2000.0 ms, 20 steps, 10.0 it/s\n", "4 KSampler: 2000.0 ms\n"]);
  });

  it("tells seconds of a step that takes longer than one", () => {
    const screen = terminal(false);
    const progress = createProgress(screen, label);
    for (const event of [started, steps(2), { ...done, ms: 46_066 }]) progress.show(event);
    assert.deepEqual(screen.printed, ["3 KSampler: 46066.0 ms, 2 steps, 23.0 s/it\n"]);
  });

  it("counts no steps for a result that comes from the cache or from an equal node", () => {
    const screen = terminal(false);
    const progress = createProgress(screen, label);
    for (const event of [started, steps(20), done, { ...done, nodeId: "4", ms: 0 }]) progress.show(event);
    assert.deepEqual(screen.printed, ["3 KSampler: 2000.0 ms, 20 steps, 10.0 it/s\n", "4 KSampler: 0.0 ms\n"]);
  });

  it("is a bar on a terminal, with the step and its rate", () => {
    const screen = terminal(true);
    const progress = createProgress(screen, label);
    for (const event of [started, steps(5)]) progress.show(event);
    assert.match(screen.printed.at(-1)!, /3 KSampler 5\/20 10\.0 it\/s$/);
    progress.clear();
    assert.equal(screen.printed.at(-1), "\r\x1b[2K");
    const narrow = terminal(true, 40);
    createProgress(narrow, label).show({ ...started, nodeId: "305" });
    assert.equal(narrow.printed.at(-1), `\r\x1b[2K${"░".repeat(24)} 0/0 305 KSampl`);
  });
});
