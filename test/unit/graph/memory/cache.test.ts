import assert from "node:assert/strict";
import { type Cache, createCache, measure } from "#src/graph/memory/cache.js";
import { createPreviewHost } from "#src/host/preview/index.js";
import { defineNode } from "#src/nodes/define.js";
import { registry as allNodes } from "#src/nodes/index.js";
import { int, text } from "#src/nodes/inputs.js";
import { Tensor } from "#src/tensor/tensor.js";
import { refuses } from "../../../helpers/errors.js";
import { basicRegistry, chain, endOf, eventsOf, node, only } from "../../../helpers/graph/graph-nodes.js";

const BYTES = 256 * 1024;
/** A tensor of 256 KiB, and the same again handed on. */
const BIG = defineNode({
  key: "Big",
  inputs: { value: int() },
  outputs: { LATENT: "LATENT" },
  run: ({ value }) => ({ LATENT: { samples: Tensor.full([65536], value) } }),
});
const PASS = defineNode({
  key: "Pass",
  inputs: { x: ["*"] },
  outputs: { x: "*" },
  run: ({ x }) => ({ x: { ...(x as object), again: x } }),
});
const registry = basicRegistry(BIG, PASS);
const big = (value: number) => ({
  b: node("Big", { value }),
  p: node("Pass", { x: ["b", 0] }),
  out: node("Show", { x: ["p", 0] }),
});
const started = async (graph: unknown, cache: Cache, options = {}) =>
  only(await eventsOf(graph, { registry, cache, ...options }), "node-start").map(({ nodeId }) => nodeId);

describe("createCache", () => {
  it("refuses an unknown policy and a wrong size", async () => {
    await refuses(() => createCache({ policy: "most" as "lru" }), "value.invalid", /bytes, classic, lru, none/);
    for (const size of [-1, Number.NaN, "5" as unknown as number]) {
      await refuses(() => createCache({ size }), "value.invalid", /Cache size/);
    }
  });

  it("bytes: counts each buffer once and evicts the least recently used", async () => {
    const cache = createCache({ size: 2.5 * BYTES });
    const tensors = () => Math.floor(cache.bytes / BYTES);
    assert.deepEqual(await started(big(1), cache), ["b", "p", "out"]);
    assert.equal(tensors(), 1);
    assert.deepEqual(await started(big(1), cache), []);
    await started(big(2), cache);
    assert.equal(tensors(), 2);
    await started(big(1), cache);
    await started(big(3), cache);
    assert.equal(tensors(), 2);
    assert.deepEqual(await started(big(1), cache), []);
    assert.deepEqual(await started(big(2), cache), ["b", "p", "out"]);
    cache.clear();
    assert.deepEqual([cache.bytes, cache.size], [0, 0]);
  });

  it("bytes: does not keep a result larger than the bound; the run succeeds", async () => {
    const cache = createCache({ size: BYTES - 1 });
    const noUi = { b: node("Big", { value: 1 }), p: node("Pass", { x: ["b", 0] }) };
    for (let i = 0; i < 2; i++) assert.deepEqual(await started(noUi, cache, { targets: ["p"] }), ["b", "p"]);
    assert.equal(cache.bytes, 0);
  });

  it("classic keeps the last graph's results, lru some more, none nothing", async () => {
    const again = async (cache: Cache) => {
      await started(chain(3), cache);
      await started(big(1), cache);
      return (await started(chain(3), cache)).length;
    };
    assert.equal(await again(createCache({ policy: "classic" })), 5);
    assert.equal(await again(createCache({ policy: "lru", size: 100 })), 0);
    assert.equal(await again(createCache({ policy: "lru", size: 0 })), 5);
    assert.equal(await again(createCache({ policy: "bytes" })), 0);
    const none = createCache({ policy: "none" });
    await started(chain(3), none);
    assert.deepEqual([(await started(chain(3), none)).length, none.size], [5, 0]);
  });

  it("identifies nodes by class, values and ancestors, not by id", async () => {
    const cache = createCache();
    const sum = (a: string, value: unknown) => ({
      [a]: node("Const", { value }),
      s: node("Add", { a: [a, 0], b: 2 }),
      out: node("Show", { x: ["s", 0] }),
    });
    await started(sum("x", 1), cache);
    assert.deepEqual(await started(sum("renamed", 1), cache), []);
    assert.deepEqual(await started(sum("x", "1"), cache), []);
    assert.deepEqual(await started(sum("x", true), cache), []);
    assert.deepEqual(await started(sum("x", 2), cache), ["x", "s", "out"]);
  });

  it("distinguishes 1, 1.0, true and texts if the declared type does", async () => {
    const any = (value: unknown) => ({ out: node("Show", { x: value }) });
    const cache = createCache();
    const runs = [1, true, "1", null, [1], { __value__: [1] }, { a: 1 }, { a: "1" }, Number.NaN];
    for (const value of runs.filter((_, i) => i !== 3 && i !== 4)) {
      assert.deepEqual(await started(any(value), cache), ["out"], String(value));
    }
    assert.deepEqual(await started(any(Number.NaN), cache), []);
    assert.deepEqual(await started(any({ a: 1 }), cache), []);
  });

  it("distinguishes 1 from 1.0 if a node shows the difference", async () => {
    const cache = createCache();
    const shown = async (literal: string) => {
      const graph = `{"s": {"class_type": "ext showAnythingLazy", "inputs": {"anything": ${literal}}}}`;
      return endOf(await eventsOf(graph, { registry: allNodes, cache })).ui.s!.text;
    };
    for (const literal of ["1", "1.0", "1", "1e-07"]) assert.deepEqual(await shown(literal), [literal]);
    assert.deepEqual(await shown("1.00"), ["1.0"]);
  });

  it("does not mix up texts that look like signatures", async () => {
    const join = defineNode({
      key: "Join",
      inputs: { a: text(), b: text() },
      outputs: { text: "STRING" },
      outputNode: true,
      run: ({ a, b }) => [`${a}/${b}`],
    });
    const cache = createCache();
    const outputs = new Set<unknown>();
    for (const [a, b] of [
      ["x", "y"],
      ["x|b=s1:y", ""],
      ["", "x|b=s1:y"],
      ["s1:x", "y"],
      ["a".repeat(600), ""],
      ["", "a".repeat(600)],
    ]) {
      const events = await eventsOf({ j: node("Join", { a, b }) }, { registry: basicRegistry(join), cache });
      outputs.add(endOf(events).outputs.j![0]);
    }
    assert.equal(outputs.size, 6);
  });

  it("shares no results across hosts, folders or definitions of a class", async () => {
    const cache = createCache();
    const host = (name: string, signature?: string) => ({
      name,
      preview: false,
      ...(signature !== undefined && { signature }),
      checkpoints: () => [],
      loadCheckpoint: () => Promise.reject(new Error()),
    });
    assert.equal((await started(chain(1), cache, { host: host("a") })).length, 3);
    assert.equal((await started(chain(1), cache, { host: host("a") })).length, 3);
    assert.equal((await started(chain(1), cache, { host: host("p", "s") })).length, 3);
    assert.equal((await started(chain(1), cache, { host: host("p", "s") })).length, 0);
    const preview = (family: string) => createPreviewHost({ checkpoints: { "old.safetensors": family } });
    assert.equal((await started(chain(1), cache, { host: preview("sd15") })).length, 3);
    assert.equal((await started(chain(1), cache, { host: preview("sdxl") })).length, 3);
    assert.equal((await started(chain(1), cache, { host: preview("sd15") })).length, 0);
    const writer = defineNode({ key: "Writer", inputs: {}, outputs: {}, writesFiles: true, run: () => [] });
    const write = (outputDir: string, more = {}) =>
      started({ w: node("Writer") }, cache, { registry: basicRegistry(writer), outputDir, ...more });
    assert.deepEqual([await write("a"), await write("a"), await write("b")], [["w"], [], ["w"]]);
    assert.deepEqual(await write("a", { rewritesFiles: true }), ["w"]);
    const other = defineNode({ key: "Const2", inputs: { value: int() }, outputs: { value: "INT" }, run: () => [5] });
    const same = defineNode({ ...other, inputs: { value: int() }, outputs: { value: "INT" } });
    const graph = { c: node("Const2", { value: 1 }), out: node("Show", { x: ["c", 0] }) };
    await started(graph, cache, { registry: basicRegistry(other) });
    assert.deepEqual(await started(graph, cache, { registry: basicRegistry(same) }), ["c", "out"]);
  });

  it("is shared by runs at the same time", async () => {
    const cache = createCache();
    const ends = await Promise.all(
      Array.from({ length: 8 }, (_, i) => eventsOf(chain(50 + (i % 2)), { cache }).then(endOf)),
    );
    assert.deepEqual(new Set(ends.map(({ status }) => status)), new Set(["success"]));
    assert.deepEqual(new Set(ends.map(({ ui }) => ui.out!.x![0])), new Set([51, 52]));
  });

  it("evicts signatures that no run repeats, never those of every run", async () => {
    const cache = createCache({ size: 20_000 });
    const run = (value: number) =>
      started(
        {
          same: node("Const", { value: 7 }),
          c: node("Const", { value }),
          s: node("Add", { a: ["same", 0], b: ["c", 0] }),
          out: node("Show", { x: ["s", 0] }),
        },
        cache,
        { volatileNodes: new Set(["c"]), validate: false },
      );
    await run(0);
    for (let i = 1; i < 8000; i++) await run(i);
    assert.ok(cache.signatureCount <= 20_010, `${cache.signatureCount} signatures`);
    assert.deepEqual(await run(8000), ["c", "s", "out"]);
  });

  it("stays small over many different graphs", async () => {
    const cache = createCache({ size: 8 * BYTES });
    for (let i = 0; i < 300; i++) await started(big(i), cache);
    assert.ok(cache.bytes <= 8 * BYTES && cache.size <= 8 * 3);
    const numbers = createCache({ size: 20_000 });
    for (let i = 0; i < 300; i++)
      await started({ c: node("Const", { value: i }), out: node("Show", { x: ["c", 0] }) }, numbers);
    assert.ok(numbers.bytes <= 20_000 && numbers.size < 100);
  });
});

const bytesOf = (value: unknown) => measure(value).buffers.reduce((sum, { byteLength }) => sum + byteLength, 0);

describe("measure", () => {
  it("finds every buffer once, however deep and often it is held", () => {
    const tensor = Tensor.zeros([100]);
    const value = { a: [tensor, { b: tensor.reshape([10, 10]) }], m: new Map([["k", new Set([tensor.data])]]), n: 5 };
    assert.equal(bytesOf(value), 400);
    assert.equal(bytesOf([tensor, Buffer.alloc(100_000), new ArrayBuffer(8)]), 400 + 100_000 + 8);
    const cyclic: unknown[] = [tensor];
    cyclic.push(cyclic);
    assert.equal(bytesOf(cyclic), 400);
  });

  it("counts texts, and stops after a bounded number of values", () => {
    assert.ok(measure("x".repeat(1000)).otherBytes >= 2000);
    assert.ok(measure(Array.from({ length: 1_000_000 }, (_, i) => [i])).otherBytes < 10_000_000);
    assert.deepEqual(
      measure(
        new (class Secret {
          readonly inner = Tensor.zeros([5]);
        })(),
      ).buffers,
      [],
    );
  });
});
