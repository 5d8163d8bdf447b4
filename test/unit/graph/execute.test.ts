import assert from "node:assert/strict";
import type { RunEvent } from "#src/graph/events.js";
import { executeGraph } from "#src/graph/execute.js";
import { createCache } from "#src/graph/memory/cache.js";
import { NumberLiteral } from "#src/io/json/lossless.js";
import { block, defineNode } from "#src/nodes/define.js";
import { registry as allNodes } from "#src/nodes/index.js";
import { any, boolean, float, image, int, mask, text } from "#src/nodes/inputs.js";
import { createRegistry } from "#src/nodes/registry.js";
import { Tensor } from "#src/tensor/tensor.js";
import { eventsUntil, refuses } from "../../helpers/errors.js";
import { BASIC_NODES, basicRegistry, chain, endOf, eventsOf, node, only } from "../../helpers/graph/graph-nodes.js";

const GIVE = defineNode({
  key: "Give",
  inputs: { value: any() },
  outputs: { value: "*" },
  run: ({ value }) => [value],
});
const LIST = defineNode({
  key: "List",
  inputs: { n: int() },
  outputs: { items: { type: "INT", list: true } },
  run: ({ n }) => [Array.from({ length: n }, (_, i) => i)],
});
const show = (...link: [string, number]) => node("Show", { x: link });

describe("executeGraph", () => {
  it("emits events in order with the time of the clock", async () => {
    let tick = 0;
    const clock = () => new Date(1000 + tick++);
    const events = await eventsOf(JSON.stringify(chain(1)), { clock, runId: "r" });
    assert.deepEqual(
      events.map((event) => [event.type, "nodeId" in event ? event.nodeId : ""]),
      [
        ["run-start", ""],
        ["cached", ""],
        ["node-start", "n0"],
        ["node-done", "n0"],
        ["node-start", "n1"],
        ["node-done", "n1"],
        ["node-start", "out"],
        ["node-done", "out"],
        ["run-done", ""],
      ],
    );
    assert.deepEqual(
      events.map(({ at }) => at),
      events.map((_, i) => 1000 + i),
    );
    assert.deepEqual(events[0], { type: "run-start", at: 1000, runId: "r", nodeIds: ["n0", "n1", "out"] });
    assert.deepEqual(
      only(events, "node-done").map(({ outputs }) => outputs),
      [[1], [2], []],
    );
    assert.deepEqual(endOf(events).ui, { out: { x: [2] } });
    assert.deepEqual((await eventsOf(chain(1), { targets: ["n1"] })).at(-1)!.type, "run-done");
    assert.deepEqual(endOf(await eventsOf(chain(1), { targets: ["n1", "n0"] })).outputs, { n1: [2], n0: [1] });
  });

  it("rejects an invalid graph before anything runs, naming the first error", async () => {
    const graph = { c: node("Const", { value: 9999 }), out: show("c", 0) };
    const error = await refuses(
      () => eventsOf(graph),
      "input.above-maximum",
      /^Node c \(Const\), input "value": expected a whole number from -1000 to 1000, received 9999\.$/,
    );
    assert.deepEqual([error.details.nodeId, error.details.input], ["c", "value"]);
    await refuses(() => eventsOf({}), "graph.no-outputs");
    await refuses(() => eventsOf({ a: node("Shw") }), "graph.unknown-class", /Did you mean Show/);
    await refuses(() => eventsOf("[}"), "graph.invalid-json");
    await refuses(() => eventsOf(chain(1), { targets: ["n7"] }), "graph.unknown-target");
    const two = { ...graph, d: node("Const"), out2: show("d", 0) };
    await refuses(() => eventsOf(two), "input.above-maximum", /There is 1 more error: Node d \(Const\), input "value"/);
  });

  it("runs good outputs and warns of the others and of unknown inputs", async () => {
    const graph = {
      ...chain(1),
      bad: node("Const", { value: 9999 }),
      out2: show("bad", 0),
      out3: node("Show", { x: 5, y: 1 }),
    };
    const events = await eventsOf(graph);
    assert.deepEqual(
      only(events, "warning").map(({ nodeId, message }) => [nodeId, /9999|no such input/.test(message)]),
      [
        ["bad", true],
        ["out3", true],
      ],
    );
    assert.deepEqual([endOf(events).status, Object.keys(endOf(events).ui).sort()], ["success", ["out", "out3"]]);
  });

  it("runs chains of 10,000 nodes and deep diamonds", async () => {
    assert.deepEqual(endOf(await eventsOf(chain(10_000))).ui.out!.x, [10_001]);
    assert.equal(only(await eventsOf(chain(1000, true)), "node-done").length, 1002);
  });

  it("maps lists, repeats the last element, passes whole lists on request", async () => {
    const whole = defineNode({
      key: "Whole",
      inputs: { a: int(), b: int() },
      outputs: { n: "INT" },
      inputIsList: true,
      run: ({ a, b }) => [a.length * 10 + b.length],
    });
    const graph = {
      l: node("List", { n: 3 }),
      m: node("List", { n: 2 }),
      sum: node("Add", { a: ["l", 0], b: ["m", 0] }),
      w: node("Whole", { a: ["l", 0], b: 7 }),
      out: show("sum", 0),
    };
    const end = endOf(
      await eventsOf(graph, { registry: basicRegistry(LIST, whole), targets: ["out", "sum", "w", "l"] }),
    );
    assert.deepEqual(end.outputs, { out: [], sum: [[0, 2, 3]], w: [31], l: [[0, 1, 2]] });
    assert.deepEqual(end.ui.out, { x: [0, 2, 3] });
  });

  it("passes floats as literals to nodes that distinguish them from integers", async () => {
    const half = defineNode({
      key: "Floats",
      inputs: {},
      outputs: { one: "FLOAT", many: { type: "FLOAT", list: true }, any: "*" },
      run: () => [80, [1, 2.5], 3],
    });
    const show = (anything: unknown) => node("ext showAnythingLazy", { anything });
    const graph = {
      f: node("Floats"),
      one: show(["f", 0]),
      many: show(["f", 1]),
      any: show(["f", 2]),
      if: node("ext if", { any: true, if: ["f", 0], else: 1 }),
      chosen: show(["if", 0]),
      else: node("ext if", {
        any: 0,
        if: 1,
        else: { __value__: [new NumberLiteral("7.0"), { deep: new NumberLiteral("2.0") }] },
      }),
      written: show(["else", 0]),
      number: node("Show", { x: ["if", 0] }),
      numbers: node("Show", { x: ["else", 0] }),
    };
    const { ui, outputs } = endOf(
      await eventsOf(graph, {
        registry: createRegistry([...BASIC_NODES, half], allNodes),
        targets: [...Object.keys(graph)],
      }),
    );
    assert.deepEqual(
      ["one", "many", "any", "chosen", "written"].map((id) => ui[id]!.text),
      [["80.0"], ["1.0", "2.5"], ["3"], ["80.0"], [7, { deep: 2 }]],
    );
    assert.deepEqual([ui.number!.x, ui.numbers!.x], [[80], [[7, { deep: 2 }]]]);
    assert.deepEqual([outputs.if, outputs.else, outputs.f], [[80], [[7, { deep: 2 }]], [80, [1, 2.5], 3]]);
  });

  it("does not run a node for an empty list unless it takes whole lists", async () => {
    const graph = { l: node("List", { n: 0 }), sum: node("Add", { a: ["l", 0], b: 1 }), out: show("sum", 0) };
    const events = await eventsOf(graph, { registry: basicRegistry(LIST) });
    assert.deepEqual(
      only(events, "warning").map(({ nodeId }) => nodeId),
      ["sum", "out"],
    );
    assert.equal(endOf(events).status, "success");
    const alone = await eventsOf(
      { l: node("List", { n: 0 }), c: node("Add", { a: ["l", 0], b: ["l", 0] }), out: show("c", 0) },
      { registry: basicRegistry(LIST) },
    );
    assert.equal(only(alone, "node-error")[0]!.error.code, "input.missing");
  });

  it("checks what comes through links against the input", async () => {
    const take = defineNode({
      key: "Take",
      inputs: {
        i: int({ min: 0, max: 5, optional: true }),
        f: float({ optional: true }),
        t: text({ optional: true }),
        b: boolean({ optional: true, default: true }),
        m: mask({ optional: true }),
        p: image({ optional: true }),
      },
      outputs: { all: "*" },
      run: (inputs) => ({ all: inputs }),
    });
    const give = defineNode({ key: "Source", inputs: {}, outputs: { v: "*" }, run: () => [value] });
    let value: unknown;
    const run = (input: string) =>
      eventsOf(
        { s: node("Source"), t: node("Take", { [input]: ["s", 0] }) },
        { registry: basicRegistry(take, give), targets: ["t"] },
      );
    const got = async (input: string, given: unknown) => {
      value = given;
      return (endOf(await run(input)).outputs.t![0] as Record<string, unknown>)[input];
    };
    const refused = async (input: string, given: unknown, code: string) => {
      value = given;
      const events = await run(input);
      const [failed] = only(events, "node-error");
      assert.equal(failed?.error.code, code, `${input} ${String(given)}`);
      assert.match(failed!.error.message, new RegExp(`^Node t \\(Take\\), input "${input}": expected `));
      assert.equal(endOf(events).status, "failed");
    };
    assert.deepEqual(
      [await got("i", "3"), await got("f", true), await got("t", 7), await got("b", null)],
      [3, 1, "7", true],
    );
    assert.deepEqual(((await got("m", Tensor.zeros([2, 3]))) as Tensor).shape, [1, 2, 3]);
    await refused("i", 6, "input.above-maximum");
    await refused("i", Number.NaN, "input.not-finite");
    await refused("t", { a: 1 }, "input.wrong-type");
    await refused("p", "no picture", "input.wrong-type");
    await refused("m", [1], "input.wrong-type");
  });

  it("passes hidden inputs: the graph, a copy of extra_pnginfo, the node's id", async () => {
    const seen: Record<string, unknown>[] = [];
    const spy = defineNode({
      key: "Spy",
      inputs: { x: int() },
      outputs: {},
      outputNode: true,
      hidden: { prompt: "PROMPT", extra: "EXTRA_PNGINFO", id: "UNIQUE_ID" },
      run: (inputs) => {
        seen.push(inputs);
        (inputs.extra as { touched: boolean }).touched = true;
        (inputs.prompt as { added: number }).added = 1;
        return [];
      },
    });
    const registry = basicRegistry(spy);
    const graph = { 10: node("easy Spy", { x: "7", id: "fake" }), 2: node("easy Spy", { x: 1 }) };
    const extraPnginfo = { workflow: { nodes: [] } };
    await eventsOf(graph, { registry, extraPnginfo, classAliases: { "easy ": "" } });
    assert.deepEqual(
      seen.map(({ x, id }) => [x, id]),
      [
        [1, "2"],
        [7, "10"],
      ],
    );
    assert.equal(seen[0]!.extra, seen[1]!.extra);
    assert.deepEqual(extraPnginfo, { workflow: { nodes: [] } });
    assert.deepEqual(Object.keys(graph), ["2", "10"]);
    assert.equal((seen[0]!.prompt as typeof graph)[10].class_type, "easy Spy");
    await eventsOf(graph, { registry, extraPnginfo, classAliases: { "easy ": "" }, metadataPrompt: { other: 1 } });
    assert.deepEqual(seen[2]!.prompt, { other: 1, added: 1 });
    const plainSpy = defineNode({
      ...spy,
      inputs: { x: int() },
      hidden: { prompt: "PROMPT" },
      run: ({ prompt }) => ({ ui: { p: [prompt] } }),
    });
    const end = endOf(
      await eventsOf({ 1: node("Spy", { x: 1 }) }, { registry: basicRegistry(plainSpy), metadataPrompt: null }),
    );
    assert.deepEqual(end.ui["1"], { p: [undefined] });
  });

  it("reports a node's failure with its name and inputs, and earlier results", async () => {
    const fail = defineNode({
      key: "Fail",
      inputs: { x: any(), t: any() },
      outputs: { x: "*" },
      run: async () => {
        throw new RangeError("too far");
      },
    });
    const cache = createCache();
    const graph = {
      c: node("Const", { value: 1 }),
      f: node("Fail", { x: ["c", 0], t: "x".repeat(500) }),
      out: show("f", 0),
    };
    const events = await eventsOf(graph, { registry: basicRegistry(fail), cache });
    const [failed] = only(events, "node-error");
    assert.equal(failed!.error.message, "Node f (Fail): too far");
    assert.ok(failed!.error.cause instanceof RangeError);
    assert.deepEqual(failed!.inputs.x, [1]);
    assert.ok(String(failed!.inputs.t![0]).length < 100);
    assert.equal(endOf(events).status, "failed");
    const again = await eventsOf(graph, { registry: basicRegistry(fail), cache });
    assert.deepEqual(only(again, "cached")[0]!.nodeIds, ["c"]);
  });

  it("names the node in errors that nodes throw on purpose", async () => {
    const { inputError } = await import("#src/base/errors.js");
    const fail = defineNode({
      key: "Fail",
      inputs: {},
      outputs: {},
      outputNode: true,
      run: () => {
        throw inputError("input.invalid", { node: "Fail", input: "x" }, "less", 5);
      },
    });
    const [failed] = only(await eventsOf({ f: node("Fail") }, { registry: basicRegistry(fail) }), "node-error");
    assert.equal(failed!.error.message, 'Node f (Fail), input "x": expected less, received 5.');
    assert.deepEqual([failed!.error.code, failed!.error.details.nodeId], ["input.invalid", "f"]);
  });

  it("reports progress and logs while the node runs, not after", async () => {
    let late: (value: number, max: number) => void = () => {};
    const slow = defineNode({
      key: "Slow",
      inputs: {},
      outputs: {},
      outputNode: true,
      run: async (_, { progress, log }) => {
        for (let i = 1; i <= 3; i++) {
          progress(i, 3, i === 3 ? "picture" : undefined);
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
        log("almost");
        late = progress;
      },
    });
    const running: string[] = [];
    const events = await eventsOf({ s: node("Slow") }, { registry: basicRegistry(slow) }, (event) => {
      running.push(event.type);
      if (event.type === "node-done") late(4, 3);
    });
    assert.deepEqual(running, [
      "run-start",
      "cached",
      "node-start",
      "progress",
      "progress",
      "progress",
      "warning",
      "node-done",
      "run-done",
    ]);
    assert.deepEqual(
      only(events, "progress").map(({ value, preview }) => [value, preview]),
      [
        [1, undefined],
        [2, undefined],
        [3, "picture"],
      ],
    );
  });

  it("blocks consumers and reports the message at the direct ones", async () => {
    const stop = defineNode({ key: "Stop", inputs: {}, outputs: { v: "INT" }, run: () => [block("not today")] });
    const graph = { s: node("Stop"), sum: node("Add", { a: ["s", 0], b: 1 }), out: show("sum", 0) };
    const events = await eventsOf(graph, { registry: basicRegistry(stop) });
    assert.deepEqual(
      only(events, "blocked").map(({ nodeId, message }) => [nodeId, message]),
      [
        ["sum", "not today"],
        ["out", undefined],
      ],
    );
    assert.equal(endOf(events).status, "success");
  });

  it("keeps a node's memory with its id in the cache", async () => {
    const count = defineNode({
      key: "Count",
      inputs: { x: int() },
      outputs: {},
      outputNode: true,
      run: (_, { state }) => {
        state.n = Number(state.n ?? 0) + 1;
        return { ui: { n: [state.n] } };
      },
    });
    const cache = createCache();
    const registry = basicRegistry(count);
    const run = async (id: string, x: number) =>
      endOf(await eventsOf({ [id]: node("Count", { x }) }, { registry, cache })).ui[id]!.n![0];
    assert.deepEqual([await run("a", 1), await run("a", 2), await run("b", 3), await run("a", 4)], [1, 2, 1, 1]);
  });

  it("expands a node into a graph, its errors and cycles included", async () => {
    const grow = defineNode({
      key: "Grow",
      inputs: { x: int(), how: text() },
      outputs: { x: "INT" },
      run: ({ x, how }) => {
        const expand: Record<string, unknown> = {
          a: node("Add", { a: x, b: 1 }),
          b: node("Add", { a: ["a", 0], b: ["a", 0] }),
        };
        if (how === "cycle") expand.a = node("Add", { a: ["b", 0], b: 1 });
        if (how === "class") expand.a = node("Nope");
        if (how === "outside") expand.a = node("Add", { a: ["c", 0], b: 1 });
        if (how === "shows") expand.s = node("Show", { x: ["b", 0] });
        return { expand, result: { x: ["b", 0] } };
      },
    });
    const run = async (how: string) =>
      eventsOf(
        { c: node("Const", { value: 5 }), g: node("Grow", { x: ["c", 0], how }), out: show("g", 0) },
        { registry: basicRegistry(grow) },
      );
    for (const how of ["", "outside", "shows"]) assert.deepEqual(endOf(await run(how)).ui.out, { x: [12] });
    const shows = await run("shows");
    assert.deepEqual(endOf(shows).ui["g.0.0.s"], { x: [12] });
    assert.equal(only(shows, "node-start").find(({ nodeId }) => nodeId === "g.0.0.a")!.displayId, "g");
    assert.equal(only(await run("cycle"), "node-error")[0]!.error.code, "graph.cycle");
    assert.match(only(await run("class"), "node-error")[0]!.error.message, /Node g \(Grow\).*"Nope"|Grow: .*"Nope"/);
  });

  it("needs a host and folders only if a node does", async () => {
    const needy = defineNode({
      key: "Needy",
      inputs: { what: text() },
      outputs: {},
      outputNode: true,
      run: ({ what }, ctx) => [what === "host" ? ctx.host : ctx.folders.output],
    });
    const codeOf = async (what: string) =>
      only(await eventsOf({ n: node("Needy", { what }) }, { registry: basicRegistry(needy) }), "node-error")[0]!.error
        .code;
    assert.deepEqual([await codeOf("host"), await codeOf("folder")], ["host.missing", "usage.invalid"]);
  });
});

describe("stopping a run", () => {
  const slow = (ran: string[]) =>
    defineNode({
      key: "Slow",
      inputs: { x: any({ optional: true }) },
      outputs: { x: "INT" },
      run: (_, { nodeId, signal }) =>
        new Promise((resolve, reject) => {
          ran.push(nodeId);
          const timer = setTimeout(() => resolve([1]), 5);
          signal.addEventListener("abort", () => {
            clearTimeout(timer);
            reject(new Error("told to stop"));
          });
        }),
    });
  const graph = { a: node("Slow"), b: node("Slow", { x: ["a", 0] }), out: show("b", 0) };

  const eventsUntilAbort = (
    graph: object,
    own: Parameters<typeof basicRegistry>[0],
    signal: AbortSignal,
    onEvent?: (event: RunEvent) => void,
  ) => eventsUntil(signal, executeGraph(graph, {}, { registry: basicRegistry(own), signal }), onEvent);

  it("before it starts: runs nothing", async () => {
    const ran: string[] = [];
    const events = await eventsUntilAbort(graph, slow(ran), AbortSignal.abort());
    assert.deepEqual(ran, []);
    assert.deepEqual(
      events.slice(-2).map(({ type }) => type),
      ["interrupted", "run-done"],
    );
    assert.equal(endOf(events).status, "interrupted");
  });

  it("between nodes: does not start the next", async () => {
    const ran: string[] = [];
    const stop = new AbortController();
    const events = await eventsUntilAbort(graph, slow(ran), stop.signal, (event) => {
      if (event.type === "node-done" && event.nodeId === "a") stop.abort();
    });
    assert.deepEqual(ran, ["a"]);
    assert.deepEqual(
      only(events, "interrupted").map(({ nodeId }) => nodeId),
      [undefined],
    );
    assert.equal(endOf(events).status, "interrupted");
  });

  it("during a node: aborts its signal, and names it", async () => {
    const ran: string[] = [];
    const stop = new AbortController();
    const events = await eventsUntilAbort(graph, slow(ran), stop.signal, (event) => {
      if (event.type === "node-start" && event.nodeId === "b") stop.abort();
    });
    assert.deepEqual(
      only(events, "interrupted").map(({ nodeId }) => nodeId),
      ["b"],
    );
    assert.deepEqual(only(events, "node-error"), []);
    assert.deepEqual(endOf(events).outputs, {});
  });

  it("reaches a run of nodes that never wait, through timers too", async () => {
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 20);
    const busy = defineNode({
      key: "Busy",
      inputs: { x: int() },
      outputs: { x: "INT" },
      notIdempotent: true,
      run: ({ x }) => {
        const until = performance.now() + 2;
        while (performance.now() < until);
        return [x];
      },
    });
    const long: Record<string, unknown> = { b0: node("Busy", { x: 1 }) };
    for (let i = 1; i < 1000; i++) long[`b${i}`] = node("Busy", { x: [`b${i - 1}`, 0] });
    const events = await eventsUntilAbort({ ...long, out: show("b999", 0) }, busy, stop.signal);
    assert.equal(endOf(events).status, "interrupted");
    assert.ok(only(events, "node-done").length < 900);
  });

  it("a consumer that ends its iteration stops the node", async () => {
    let heard: AbortSignal | undefined;
    const wait = defineNode({
      key: "Wait",
      inputs: {},
      outputs: {},
      outputNode: true,
      run: (_, { signal }) =>
        new Promise((_resolve, reject) => {
          heard = signal;
          signal.addEventListener("abort", () => reject(new Error("stopped")));
        }),
    });
    for await (const event of executeGraph({ w: node("Wait") }, {}, { registry: basicRegistry(wait) })) {
      if (event.type === "node-start") break;
    }
    assert.equal(heard?.aborted, true);
  });

  it("during a node that does not listen: ends as any other, and hears no more of it", async () => {
    const stop = new AbortController();
    let wake = () => {};
    const deaf = defineNode({
      key: "Deaf",
      inputs: {},
      outputs: {},
      outputNode: true,
      run: (_, { log }) =>
        new Promise<never[]>((resolve) => {
          wake = () => {
            log("late");
            resolve([]);
          };
        }),
    });
    const heard: RunEvent[] = [];
    const surroundings = {
      registry: basicRegistry(deaf),
      signal: stop.signal,
      onEvent: (event: RunEvent) => void heard.push(event),
    };
    const events = await eventsUntil(stop.signal, executeGraph({ d: node("Deaf") }, {}, surroundings), (event) => {
      if (event.type === "node-start") stop.abort();
      // between its last events, too
      if (event.type === "interrupted") wake();
    });
    wake();
    await new Promise(setImmediate);
    const types = ["run-start", "cached", "node-start", "interrupted", "run-done"];
    for (const seen of [events, heard])
      assert.deepEqual(
        seen.map(({ type }) => type),
        types,
      );
    assert.equal(only(events, "interrupted")[0]!.nodeId, "d");
    assert.equal(endOf(events).status, "interrupted");
  });

  it("leaves no listener on the caller's signal", async () => {
    const { signal } = new AbortController();
    let listeners = 0;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners++;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners--;
      remove(...args);
    };
    await eventsOf(chain(3), { signal });
    assert.equal(listeners, 0);
  });
});

describe("memory", () => {
  it("of a run is released with the run", async () => {
    const big = defineNode({
      key: "Big",
      inputs: { x: int() },
      outputs: { t: "LATENT" },
      run: ({ x }) => [{ samples: Tensor.full([1 << 20], x) }],
    });
    const cache = createCache({ size: 16 * 2 ** 20 });
    const registry = basicRegistry(big, GIVE);
    for (let i = 0; i < 60; i++) {
      const events: RunEvent[] = await eventsOf({ b: node("Big", { x: i }) }, { registry, cache, targets: ["b"] });
      assert.equal(endOf(events).status, "success");
    }
    assert.ok(cache.bytes <= 16 * 2 ** 20);
    // 240 MiB went through
    assert.ok(process.memoryUsage().arrayBuffers < 2 ** 30);
  });
});
