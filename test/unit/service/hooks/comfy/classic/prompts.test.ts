import assert from "node:assert/strict";
import { PromptView, statusJson } from "#src/service/hooks/comfy/classic/prompts.js";

describe("prompt view", () => {
  const fold = (events: readonly (readonly [event: string, data: object])[]) => {
    const view = new PromptView("p");
    const messages = events.flatMap(([event, data], at) =>
      view.take({ id: at + 1, event, data: JSON.stringify(data) }, 1000 + at),
    );
    return { view, types: messages.map(({ type }) => type), messages };
  };
  const started = [
    ["status", {}],
    ["cached", { nodes: ["1"] }],
  ] as const;

  it("cached nodes are told once, also where there are none", () => {
    const { messages } = fold([...started, ["node_start", { node: "2" }]]);
    assert.deepEqual(
      messages.map(({ type, data }) => [type, data.nodes ?? data.node ?? null]),
      [
        ["execution_start", null],
        ["execution_cached", ["1"]],
        ["executing", "2"],
      ],
    );
    assert.deepEqual(
      fold([
        ["status", {}],
        ["done", {}],
      ]).types,
      ["execution_start", "execution_cached", "execution_success"],
    );
  });

  it("cached nodes are told after warnings of the graph", () => {
    const { messages } = fold([["status", {}], ["warning", { message: "odd" }], started[1]]);
    assert.deepEqual(
      messages.map(({ type, data }) => [type, data.nodes ?? null]),
      [
        ["execution_start", null],
        ["execution_cached", ["1"]],
      ],
    );
  });

  it("an interrupted run names the class of the node that ran", () => {
    const { messages } = fold([...started, ["node_start", { node: "2", class_type: "KSampler" }], ["aborted", {}]]);
    assert.deepEqual([messages.at(-1)!.data.node_id, messages.at(-1)!.data.node_type], ["2", "KSampler"]);
  });

  it("files of all folders are known by the paths of clients, other urls are none", () => {
    const file = (subfolder: string, url: unknown) => ["image", { subfolder, filename: "a.png", url }] as const;
    const { view } = fold([
      ...started,
      file("runs/p", "/api/runs/p/files/a.png"),
      file("runs/p/temp", "/api/runs/p/files/a-2%20b.png"),
      file("runs/p/x", "/api/runs/p/files/%"),
      file("runs/p/y", 7),
    ]);
    assert.deepEqual(
      [...view.files],
      [
        ["runs/p/a.png", "a.png"],
        ["runs/p/temp/a.png", "a-2 b.png"],
      ],
    );
  });

  it("an error names its node; one without a node has the run's words", () => {
    const failure = { node: "2", class_type: "KSampler", message: "no", code: "node.failed" };
    const { messages, view } = fold([
      ...started,
      ["node_done", { node: "1" }],
      ["node_error", failure],
      ["error", { error: "the run's words", code: "agent_failed" }],
    ]);
    const { data } = messages.at(-1)!;
    assert.deepEqual(
      [data.node_id, data.node_type, data.exception_message, data.exception_type, data.executed],
      ["2", "KSampler", "no", "node.failed", ["1"]],
    );
    assert.equal((statusJson({ state: "failed" }, view) as { status_str: string }).status_str, "error");
    const late = fold([["error", { error: "waited too long", code: "expired" }]]).messages;
    assert.deepEqual(
      [late[0]!.type, late[0]!.data.exception_message, late[0]!.data.node_id],
      ["execution_error", "waited too long", null],
    );
  });

  it("a prompt that never started is interrupted; one that starts again has one start in the history", () => {
    assert.deepEqual(fold([["aborted", { text: null }]]).types, ["execution_interrupted"]);
    const { view } = fold([...started, ["status", {}], ["done", {}]]);
    assert.deepEqual(
      view.milestones.map(({ type }) => type),
      ["execution_start", "execution_cached", "execution_success"],
    );
  });

  it("events of any agent pass, whatever they hold", () => {
    const odd = [
      "cached",
      "node_start",
      "progress",
      "node_done",
      "node_output",
      "node_error",
      "image",
      "delta",
      "done",
    ];
    for (const data of ["null", "7", "[]", '"x"', '{"node":{"__proto__":1}}']) {
      const view = new PromptView("p");
      for (const [at, event] of ["status", ...odd].entries()) view.take({ id: at + 1, event, data }, 0);
      assert.equal(view.milestones.at(-1)!.type, "execution_success");
    }
  });
});
