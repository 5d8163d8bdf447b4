import assert from "node:assert/strict";
import { JobView } from "#src/service/hooks/comfy/job-view.js";

const events = (...list: [string, object | string | null][]) =>
  list.map(([event, data], i) => ({ id: i + 1, event, data: JSON.stringify(data) }));

describe("JobView", () => {
  it("progress counts nodes and the steps of the one that runs, and never falls", () => {
    const view = new JobView();
    const values: number[] = [];
    for (const event of events(
      ["node_done", { node: "1", done: 1, nodes: 4 }],
      ["node_start", { node: "2", class_type: "KSampler" }],
      ["progress", { value: 1, max: 2, node: "2" }],
      ["progress", { value: 0, max: 2, node: "2" }],
      ["progress", { value: Number.MAX_VALUE, max: -1, node: "2" }],
      ["node_done", { node: "2", done: 2, nodes: 4 }],
    )) {
      view.take(event);
      values.push(view.progress!.value);
    }
    assert.deepEqual(values, [0.25, 0.25, 0.375, 0.375, 0.375, 0.5]);
    assert.equal(view.cursor, 6);
  });

  it("events of another agent, with whatever data, are read without harm", () => {
    const view = new JobView();
    for (const event of events(
      ["delta", "x"],
      ["progress", null],
      ["image", { url: "%E0%A4%A" }],
      ["image", { url: 5 }],
      ["node_error", "x"],
      ["node_done", { done: "a", nodes: null }],
    )) {
      view.take(event);
    }
    assert.deepEqual(view.outputs, []);
    assert.equal(view.progress?.value, 0);
  });

  it("outputs have the node and the file of their event; beyond 1,000 they are left out", () => {
    const view = new JobView();
    const image = ["image", { node: "9", url: "/api/runs/x/files/a%20b.png" }] as [string, object];
    for (const event of events(...Array.from({ length: 1001 }, () => image))) view.take(event);
    assert.equal(view.outputs.length, 1000);
    assert.deepEqual(view.outputs[0], { eventId: 1, node: "9", file: "a b.png" });
  });
});
