import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { batch, createRegistry, defineNode, executeGraph, int, invokeNode, registry, render } from "latentkit";
import { onAbort, Span } from "#src/base/abort.js";
import { rejectsAs } from "../../helpers/errors.js";
import { temporaryFolder } from "../../helpers/folders.js";

const MANY = 20;
const listeners = (signal: AbortSignal) => getEventListeners(signal, "abort").length;

/** A node that listens to its signal, and goes on after a turn of the event loop. */
const listening = defineNode({
  key: "Listening",
  inputs: { value: int() },
  outputs: { value: "INT" },
  outputNode: true,
  notIdempotent: true,
  run: async ({ value }, { signal }) => {
    for (let i = 0; i < MANY; i++) signal.addEventListener("abort", () => {});
    await turn();
    return [value];
  },
});
const nodes = createRegistry([listening], registry);
const graph = { 1: { class_type: "Listening", inputs: { value: 1 } } };
const inCode = { 1: { class_type: "SolidMask", inputs: { value: 0, width: 8, height: 8 } } };

describe("many runs on one signal", () => {
  const folder = temporaryFolder();
  const work: Record<string, (signal: AbortSignal) => Promise<unknown>> = {
    "render, of nodes that listen": (signal) => render(graph, { signal, registry: nodes, outputDir: folder() }),
    "render, of the package's nodes": (signal) => render(inCode, { signal, targets: ["1"], outputDir: folder() }),
    executeGraph: async (signal) => {
      for await (const _ of executeGraph(graph, { signal, registry: nodes }));
    },
    "batch, in turns": async (signal) => {
      const items = [{ "1.value": 1 }, { "1.value": 2 }];
      const options = { signal, drain: signal, registry: nodes, outputDir: folder() };
      for await (const _ of batch(graph, items, options));
    },
    invokeNode: (signal) => invokeNode("Listening", { value: 1 }, { signal, registry: nodes }),
  };
  for (const [name, run] of Object.entries(work)) {
    it(`${name}: no warning of a leak, one listener, none at the end`, async () => {
      const warnings: Error[] = [];
      const hear = (warning: Error) => warnings.push(warning);
      process.on("warning", hear);
      const { signal } = new AbortController();
      const runs = Array.from({ length: MANY }, () => run(signal));
      assert.ok(listeners(signal) <= 1, `${listeners(signal)} listeners`);
      await Promise.all(runs);
      await turn();
      process.off("warning", hear);
      assert.deepEqual(warnings, []);
      assert.equal(listeners(signal), 0);
    });
  }

  it("all of them hear the abort", async () => {
    const waits = defineNode({
      key: "Waits",
      inputs: {},
      outputs: { value: "INT" },
      outputNode: true,
      run: (_, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    });
    const stop = new AbortController();
    const options = { signal: stop.signal, registry: createRegistry([waits]), outputDir: folder() };
    const runs = Array.from({ length: MANY }, () => render({ 1: { class_type: "Waits", inputs: {} } }, options));
    const calls = Array.from({ length: MANY }, () => invokeNode("Waits", {}, options));
    await turn();
    stop.abort();
    await Promise.all([...runs, ...calls].map((work) => rejectsAs(stop.signal, work)));
    assert.equal(listeners(stop.signal), 0);
  });
});

describe("onAbort", () => {
  it("calls back once, in order, and not whom a former callback took off", () => {
    const { signal, abort } = controller();
    const heard: string[] = [];
    onAbort(signal, () => {
      heard.push("a");
      leaveB();
    });
    const leaveB = onAbort(signal, () => heard.push("b"));
    onAbort(signal, () => heard.push("c"));
    const leaveD = onAbort(signal, () => heard.push("d"));
    leaveD();
    leaveD();
    abort();
    abort();
    assert.deepEqual(heard, ["a", "c"]);
  });

  it("calls back at once if the signal has aborted, never if there is none", () => {
    const { signal, abort } = controller();
    abort();
    let count = 0;
    onAbort(signal, () => count++)();
    onAbort(undefined, () => count++)();
    assert.equal(count, 1);
  });

  it("takes the listener off with the last wait, and puts it on again for the next", () => {
    const { signal, abort } = controller();
    const leaves = [onAbort(signal, () => {}), onAbort(signal, () => {})];
    assert.equal(listeners(signal), 1);
    for (const leave of leaves) leave();
    assert.equal(listeners(signal), 0);
    let isHeard = false;
    onAbort(signal, () => {
      isHeard = true;
    });
    assert.equal(listeners(signal), 1);
    abort();
    assert.equal(isHeard, true);
  });
});

describe("Span", () => {
  it("hands the reason on, and aborts at its end", () => {
    const outer = new AbortController();
    const spans = [new Span(outer.signal), new Span(undefined)] as const;
    const [first, second] = spans.map(({ signal }) => signal);
    outer.abort("enough");
    assert.deepEqual([first!.aborted, first!.reason, second!.aborted], [true, "enough", false]);
    for (const span of spans) span.end();
    assert.equal(second!.reason.name, "AbortError");
  });

  it("asked for a signal after its end, gives one that has aborted and follows nothing", () => {
    const outer = new AbortController();
    const span = new Span(outer.signal);
    span.end();
    assert.equal(span.signal.aborted, true);
    assert.equal(listeners(outer.signal), 0);
  });
});

function controller() {
  const stop = new AbortController();
  return { signal: stop.signal, abort: () => stop.abort() };
}
