import assert from "node:assert/strict";
import { resolve } from "node:path";
import { setImmediate } from "node:timers/promises";
import {
  any,
  block,
  boolean,
  registry as builtIn,
  choice,
  createRegistry,
  defineNode,
  float,
  image,
  int,
  invokeNode,
  LatentkitError,
  type NodeContext,
  Tensor,
  text,
} from "latentkit";
import { refuses, rejectsAs } from "../../helpers/errors.js";

let seen: { inputs: Record<string, unknown>; context: NodeContext };

const probe = defineNode({
  key: "probe",
  inputs: {
    count: int({ min: 0, max: 10 }),
    factor: float({ optional: true, default: 0.5 }),
    label: text({ optional: true }),
    on: boolean({ optional: true }),
    mode: choice(["a", "b"], { optional: true }),
    picture: image({ optional: true }),
    thing: any({ optional: true }),
  },
  outputs: { twice: "INT", none: "*" },
  hidden: { graph: "PROMPT", info: "EXTRA_PNGINFO", me: "UNIQUE_ID" },
  run: (inputs, context) => {
    seen = { inputs, context };
    return { twice: inputs.count * 2, none: null };
  },
});
const lists = defineNode({
  key: "lists",
  inputs: { items: int(), more: text({ optional: true }) },
  outputs: { all: { type: "INT", list: true } },
  inputIsList: true,
  run: ({ items, more }) => ({ result: [items], ui: { more: more ?? ["none"] } }),
});
const broken = defineNode({
  key: "broken",
  inputs: { how: text() },
  outputs: { out: "*" },
  validate: ({ how }) => (how === "invalid" ? "how is invalid" : how !== "refused"),
  run: ({ how }) => {
    if (how === "throw") throw new TypeError("oops");
    if (how === "too large") Tensor.zeros([1e9, 1e9]);
    if (how === "typed") throw new LatentkitError("value.invalid", "broken: own words.", { node: "broken" });
    if (how === "expand") return { result: { out: 1 }, expand: {} };
    if (how === "block") return { out: block("stop") };
    return undefined;
  },
});
const registry = createRegistry([probe, lists, broken], builtIn);
const run = (inputs: Record<string, unknown>, options: Parameters<typeof invokeNode>[2] = {}) =>
  invokeNode("probe", inputs, { registry, ...options });

describe("nodes/invoke", () => {
  it("converts values, fills defaults and answers in output order", async () => {
    assert.deepEqual(await run({ count: "4" }), { result: [8, null] });
    assert.deepEqual(seen.inputs, {
      count: 4,
      factor: 0.5,
      label: undefined,
      on: undefined,
      mode: undefined,
      picture: undefined,
      thing: undefined,
      graph: undefined,
      info: undefined,
      me: undefined,
    });
    await run({ count: 1, factor: null, label: 5, on: 0, mode: "b", thing: null });
    const { factor, label, on, mode, thing } = seen.inputs;
    assert.deepEqual([factor, label, on, mode, thing], [0.5, "5", false, "b", null]);
  });

  it("gives hidden inputs under the node's names, JSON text read with every digit", async () => {
    const prompt = { "1": {} };
    await run(
      { count: 1 },
      { hidden: { prompt, extra_pnginfo: '{"a": 18446744073709551615, "b": NaN}', unique_id: 7 } },
    );
    assert.equal(seen.inputs.graph, prompt);
    assert.deepEqual(seen.inputs.info, { a: 18446744073709551615n, b: Number.NaN });
    assert.equal(seen.inputs.me, "7");
    assert.equal(seen.context.nodeId, "7");
    await refuses(run({ count: 1 }, { hidden: { prompt: "{" } }), "graph.invalid-json");
  });

  it("gives the node a context: folders, clock, fetch, config, host, signal", async () => {
    const clock = () => new Date(5);
    const fetch = async () => new Response();
    const config = { remote_image_api: { base_url: "x" } };
    const { signal } = new AbortController();
    await run({ count: 1 }, { clock, fetch, config, signal, outputDir: "a", inputDir: "b" });
    const { context } = seen;
    assert.deepEqual([context.clock, context.fetch, context.config], [clock, fetch, config]);
    // what the node has left behind is told to stop
    assert.equal(context.signal.aborted, true);
    assert.deepEqual(context.folders, { output: resolve("a"), input: resolve("b") });
    await run({ count: 1 });
    assert.deepEqual(seen.context.folders, { output: resolve("out"), input: resolve("input") });
    assert.equal(seen.context.fetch, globalThis.fetch);
    assert.ok(seen.context.clock() instanceof Date);
    assert.equal(seen.context.host.preview, true);
  });

  it("gives lists to a node that takes lists, and a list output is an array", async () => {
    assert.deepEqual(await invokeNode("lists", { items: ["1", 2], more: ["a"] }, { registry }), {
      result: [[1, 2]],
      ui: { more: ["a"] },
    });
    assert.deepEqual(await invokeNode("lists", { items: 1 }, { registry }), { result: [[1]], ui: { more: ["none"] } });
    await refuses(invokeNode("lists", { items: [1, "x"] }, { registry }), "input.wrong-type", /lists, input "items"/);
    await refuses(invokeNode("lists", {}, { registry }), "input.missing");
  });

  it("names an unknown node and hints at the one meant", async () => {
    const error = await refuses(
      invokeNode("ext imageToMsk", {}),
      "graph.unknown-class",
      /Did you mean ext imageToMask/,
    );
    assert.equal(error.details.suggestion, "ext imageToMask");
    const node = /expected a registered key or a node that defineNode returned, received/;
    await refuses(invokeNode(5 as never, {}), "graph.unknown-class", node);
    await refuses(
      invokeNode({ key: "a", inputs: {}, outputs: {}, run: () => ({}) } as never, {}),
      "graph.unknown-class",
      node,
    );
    await refuses(invokeNode("__proto__", {}), "graph.unknown-class");
  });

  it("passes over inputs the node does not have, with a warning that hints at the one meant", async () => {
    const heard: string[] = [];
    const log = (message: string) => heard.push(message);
    await run({ count: 1, facter: 5, unheard: 5 }, { log });
    assert.equal(seen.inputs.factor, 0.5);
    assert.equal(Object.hasOwn(seen.inputs, "unheard"), false);
    assert.deepEqual(heard, [
      'probe has no input "facter"; its value is not used. Did you mean factor?',
      'probe has no input "unheard"; its value is not used.',
    ]);
    await refuses(run({ cuont: 4 }), "input.missing", /"count"/);
  });

  it("takes own inputs only", async () => {
    await refuses(run(Object.create({ count: 1 })), "input.missing");
    for (const inputs of [null, 5, [], "a"]) await refuses(run(inputs as never), "usage.invalid");
  });

  it("says what a node's own validation says", async () => {
    await refuses(invokeNode("broken", { how: "invalid" }, { registry }), "input.invalid", /broken: how is invalid\.$/);
    await refuses(invokeNode("broken", { how: "refused" }, { registry }), "input.invalid", /broken/);
  });

  it("names the node in every error", async () => {
    const fails = (how: string, code: string, pattern: RegExp) =>
      refuses(invokeNode("broken", { how }, { registry }), code, pattern);
    const thrown = await fails("throw", "node.failed", /^broken: oops$/);
    assert.ok(thrown.cause instanceof TypeError);
    assert.equal((await fails("too large", "tensor.too-large", /^broken, Shape/)).details.node, "broken");
    await fails("typed", "value.invalid", /^broken: own words\.$/);
    await fails("expand", "node.failed", /executeGraph/);
    const blocked = await invokeNode("broken", { how: "block" }, { registry });
    assert.equal((blocked.result[0] as { message: string }).message, "stop");
  });

  it("stops for a signal before the node runs and after", async () => {
    seen = undefined as never;
    const aborted = AbortSignal.abort("no longer wanted");
    await rejectsAs(aborted, run({ count: 1 }, { signal: aborted }));
    assert.equal(seen, undefined);
    const controller = new AbortController();
    const slow = defineNode({
      key: "slow",
      inputs: {},
      outputs: {},
      run: async (_, { signal }) => {
        controller.abort();
        signal.throwIfAborted();
      },
    });
    const options = { registry: createRegistry([slow]), signal: controller.signal };
    await rejectsAs(controller.signal, invokeNode("slow", {}, options));
  });

  it("rejects with the signal's reason if a node does not listen, and hears no more of it", async () => {
    const stop = new AbortController();
    let wake = () => {};
    const logged: string[] = [];
    const deaf = defineNode({
      key: "deaf",
      inputs: {},
      outputs: {},
      run: async (_, { log }) => {
        log("before");
        setTimeout(() => stop.abort());
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        log("after");
      },
    });
    const log = (message: string) => void logged.push(message);
    const options = { registry: createRegistry([deaf]), signal: stop.signal, log };
    await rejectsAs(stop.signal, invokeNode("deaf", {}, options));
    wake();
    await setImmediate();
    assert.deepEqual(logged, ["before"]);
  });
});
