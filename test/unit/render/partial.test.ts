import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type BatchEvent, type BatchOptions, batch, executeGraph, registry, render, validateGraph } from "latentkit";
import { createGraphAgent } from "latentkit/hooks";
import { refuses } from "../../helpers/errors.js";
import { filesIn, root, temporaryFolder } from "../../helpers/folders.js";
import { node } from "../../helpers/graph/graph-nodes.js";
import { latentkit } from "../../helpers/process/cli.js";

const inputDir = join(root, "test/graphs/input");
const library = JSON.stringify(pathToFileURL(join(root, "dist/index.js")).href);

/** Two outputs; the second one needs `channel`, if only by a link that is lazy. */
const twoSides = (channel: unknown) => ({
  "1": node("LoadImage", { image: "lake.png" }),
  "2": node("SaveImage", { images: ["1", 0], filename_prefix: "good" }),
  "3": node("ext imageToMask", { image: ["1", 0], channel }),
  "4": node("SaveImage", { images: ["9", 0], filename_prefix: "other" }),
  "9": node("ext if", { any: true, if: ["1", 0], else: ["3", 0] }),
});
const WRONG = /^Node 3 \(ext imageToMask\), input "channel": expected .*, received "none"/;
/** One output needs a cycle. */
const cyclic = {
  "1": node("LoadImage", { image: "lake.png" }),
  "2": node("SaveImage", { images: ["1", 0], filename_prefix: "good" }),
  "3": node("ext saveImageLazy", { images: ["4", 0], filename_prefix: "a", save_metadata: true }),
  "4": node("ext saveImageLazy", { images: ["3", 0], filename_prefix: "b", save_metadata: true }),
  "5": node("SaveImage", { images: ["4", 0], filename_prefix: "c" }),
};

describe("an output that cannot be computed", () => {
  const folder = temporaryFolder();
  const out = () => join(folder(), "out");
  const journal = () => join(folder(), "batch.jsonl");
  const rendered = (graph: object, options = {}) => render(graph, { inputDir, outputDir: out(), ...options });
  async function run(graph: object, items: Iterable<object> | AsyncIterable<object>, options: BatchOptions = {}) {
    const events: BatchEvent[] = [];
    for await (const event of batch(graph, items, { inputDir, outputDir: out(), concurrency: 1, ...options })) {
      events.push(event);
    }
    return events;
  }
  const only = <T extends BatchEvent["type"]>(events: readonly BatchEvent[], type: T) =>
    events.filter((event): event is Extract<BatchEvent, { type: T }> => event.type === type);
  const end = (events: readonly BatchEvent[]) => {
    const { status, done, skipped, failed } = only(events, "batch-done")[0]!;
    return [status, done, skipped, failed];
  };
  const records = (type: string) =>
    readFileSync(journal(), "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter((record) => record.type === type);

  describe("render", () => {
    it("refuses the graph before anything is written, naming every error", async () => {
      const error = await refuses(rendered(twoSides("none")), "input.not-in-list", WRONG);
      assert.equal(error.meaning.exit, 2);
      const two = { ...twoSides("none"), "6": node("SaveImage", { filename_prefix: "x" }) };
      await refuses(rendered(two), "input.not-in-list", /There is 1 more error: Node 6 \(SaveImage\), input "images"/);
      assert.ok(!existsSync(out()));
    });

    it("refuses a cycle that only one output needs", async () => {
      await refuses(rendered(cyclic), "graph.cycle", /cycle: 3 → 4 → 3/);
      assert.ok(!existsSync(out()));
    });

    it("bounds a message of very many errors", async () => {
      const many = Object.fromEntries(
        Array.from({ length: 3000 }, (_, i) => [`s${i}`, node("SaveImage", { filename_prefix: "x" })]),
      );
      const error = await refuses(rendered({ ...twoSides("red"), ...many }), "input.missing", /2999 more errors/);
      assert.ok(error.message.length < 2000, `${error.message.length}`);
      const { warnings, leftOut } = await rendered({ ...twoSides("red"), ...many }, { partial: true });
      assert.equal(leftOut.length, 3000);
      assert.ok(warnings.length <= 101);
      assert.match(warnings.at(-1)!, /^2900 more errors; 3000 outputs are left out in all\.$/);
    });

    it("leaves it out with `partial`, and says which", async () => {
      const result = await rendered(twoSides("none"), { partial: true });
      assert.equal(result.status, "success");
      assert.deepEqual(filesIn(out()), ["good_00001_.png"]);
      assert.deepEqual(result.leftOut, ["4"]);
      assert.match(result.warnings[0]!, WRONG);
      assert.match(result.warnings[0]!, / Left out: output 4 \(SaveImage\)\.$/);
      const circle = await rendered(cyclic, { partial: true });
      assert.deepEqual([circle.status, circle.leftOut], ["success", ["5"]]);
      // not one that can be computed
      await refuses(rendered(twoSides("none"), { partial: true, targets: ["4"] }), "input.not-in-list");
    });

    it("does not look at outputs that are not targets", async () => {
      const result = await rendered(twoSides("none"), { targets: ["2"] });
      assert.deepEqual([result.status, result.leftOut, result.warnings], ["success", [], []]);
    });

    it("takes only true or false for `partial`", async () => {
      await refuses(rendered(twoSides("red"), { partial: "yes" }), "usage.invalid", /^partial: expected true or/);
    });
  });

  it("is left out by executeGraph and validateGraph, as the host does", async () => {
    const events = [];
    for await (const event of executeGraph(twoSides("none"), { inputDir, outputDir: out() })) events.push(event);
    assert.equal(events.at(-1)!.type === "run-done" && (events.at(-1) as { status: string }).status, "success");
    assert.deepEqual(events[0]!.type === "run-start" && events[0]!.leftOut, ["4"]);
    const verdict = validateGraph(twoSides("none"), { inputDir });
    assert.deepEqual(verdict.ok && verdict.outputs, ["2"]);
    const iterator = executeGraph(twoSides("none"), { inputDir, outputDir: out(), partial: false });
    await refuses(iterator.next(), "input.not-in-list", WRONG);
  });

  describe("batch", () => {
    it("is refused before the first item if no item can change it", async () => {
      const seeds = [{ "2.filename_prefix": "a" }, { "2.filename_prefix": "b" }];
      await refuses(run(twoSides("none"), seeds, { journal: journal() }), "input.not-in-list", WRONG);
      await refuses(run(cyclic, seeds, { journal: journal() }), "graph.cycle");
      await refuses(run(twoSides("{{side}}"), seeds, { set: { side: "none" } }), "input.not-in-list", WRONG);
      await refuses(run(twoSides("none"), seeds, { targets: ["4"], partial: true }), "input.not-in-list");
      assert.ok(!existsSync(out()) && !existsSync(journal()));
    });

    it("is refused so with a setup module's nodes, in a thread and in place", async () => {
      const setup = join(folder(), "setup.mjs");
      writeFileSync(
        setup,
        `import { createRegistry, defineNode, int, registry } from ${library};
        const own = defineNode({ key: "Own", inputs: { n: int({ max: 3 }) }, outputs: {}, outputNode: true, run: () => [] });
        export default () => ({ registry: createRegistry([own], registry) });`,
      );
      const graph = { ...twoSides("red"), "5": node("Own", { n: 4 }) };
      const more = { setup: pathToFileURL(setup), journal: journal() };
      const seeds = [{ "2.filename_prefix": "a" }];
      await refuses(run(graph, seeds, more), "input.above-maximum", /^Node 5 \(Own\)/);
      await refuses(run(graph, seeds, { ...more, clock: () => new Date() }), "input.above-maximum", /^Node 5 \(Own\)/);
      assert.deepEqual(end(await run(graph, [{ "5.n": 3 }, { "5.n": 4 }], more)), ["failed", 1, 0, 1]);
    });

    it("fails the items that have it if another can be good", async () => {
      const events = await run(twoSides("{{side}}"), [{ side: "red" }, { side: "none" }]);
      assert.deepEqual(end(events), ["failed", 1, 0, 1]);
      assert.match(only(events, "item-failed")[0]!.error.message, WRONG);
      assert.deepEqual(filesIn(out()), ["good_00001_.png", "other_00001_.png"]);
      // by an input, a link of it, or keys that are not known before
      const fixed = await run(twoSides("none"), [{ "3.channel": "red" }, { "4.images": ["1", 0] }]);
      assert.deepEqual(end(fixed), ["success", 2, 0, 0]);
      async function* later() {
        yield { "3.channel": "red" };
        yield {};
      }
      assert.deepEqual(end(await run(twoSides("none"), later())), ["failed", 1, 0, 1]);
      const open = await run(cyclic, [{ "3.images": ["1", 0] }, { "2.filename_prefix": "x" }]);
      assert.deepEqual(end(open), ["failed", 1, 0, 1]);
    });

    it("renders a failed item again with resume", async () => {
      const items = [{ side: "red" }, { side: "none" }];
      const more = { journal: journal() };
      assert.deepEqual(end(await run(twoSides("{{side}}"), items, more)), ["failed", 1, 0, 1]);
      assert.equal(records("failed").length, 1);
      assert.deepEqual(end(await run(twoSides("{{side}}"), items, { ...more, resume: true })), ["failed", 0, 1, 1]);
      assert.equal(records("failed").length, 2);
    });

    it("with `partial` says in event and journal what an item was rendered without", async () => {
      const items = [{ side: "red" }, { side: "none" }];
      const more = { journal: journal(), partial: true };
      const events = await run(twoSides("{{side}}"), items, more);
      assert.deepEqual(end(events), ["success", 2, 0, 0]);
      assert.deepEqual(
        [0, 1].map((item) => only(events, "item-done").find(({ index }) => index === item)!.leftOut),
        [undefined, ["4"]],
      );
      assert.match(only(events, "warning")[0]!.message, / Left out: output 4 \(SaveImage\)\.$/);
      assert.deepEqual(
        [0, 1].map((place) => records("done").find(({ item }) => item === place)!.leftOut),
        [undefined, ["4"]],
      );
      const again = await run(twoSides("{{side}}"), items, { ...more, resume: true });
      assert.deepEqual(end(again), ["success", 0, 2, 0]);
      assert.match(
        only(again, "warning")[0]!.message,
        /^One item .* outputs that could not be computed; without partial \(--partial\) it is rendered again/,
      );
    });

    it("without `partial` renders again what an earlier run rendered without an output @long", async () => {
      const items = [{ side: "red" }, { side: "none" }];
      const more = { journal: journal() };
      await run(twoSides("{{side}}"), items, { ...more, partial: true });
      const before = filesIn(out());
      const whole = await run(twoSides("{{side}}"), items, { ...more, resume: true });
      assert.deepEqual(end(whole), ["failed", 0, 1, 1]);
      assert.match(only(whole, "warning")[0]!.message, /outputs that could not be computed; it is rendered again/);
      assert.deepEqual(filesIn(out()), before);
      // the failed one is tried again, and its picture stays its own
      const last = await run(twoSides("{{side}}"), items, { ...more, resume: true, partial: true });
      assert.deepEqual(end(last), ["success", 1, 1, 0]);
    });

    it("refuses a journal whose left out outputs are none", async () => {
      const items = [{ side: "none" }];
      await run(twoSides("{{side}}"), items, { journal: journal(), partial: true });
      writeFileSync(journal(), readFileSync(journal(), "utf8").replace('"leftOut": ["4"]', '"leftOut": 4'));
      const again = run(twoSides("{{side}}"), items, { journal: journal(), partial: true, resume: true });
      await refuses(again, "journal.refused", /line 3: expected ids of outputs that were left out, received 4/);
    });
  });

  it("fails a run of createGraphAgent, unless it may be partial", async () => {
    const warnings: unknown[] = [];
    const context = {
      signal: new AbortController().signal,
      emit: (event: string, data: Record<string, unknown>) => void (event === "warning" && warnings.push(data.message)),
      addFile: ({ path }: { path: string }) => ({ url: path }),
    };
    const message = { id: "r1", sessionKey: "s", message: "none", name: "" };
    for (const live of [{}, { registry }]) {
      const options = { graph: twoSides("{{message}}"), outputDir: out(), inputDir, threads: 1, ...live };
      const strict = createGraphAgent({ ...options, graph: twoSides("none") });
      const lax = createGraphAgent({ ...options, partial: true });
      try {
        const empty = { ...message, message: "{}" };
        await refuses(Promise.resolve(strict(empty as never, context as never)), "input.not-in-list", WRONG);
        assert.ok(!existsSync(out()));
        const { response } = await lax(message as never, context as never);
        assert.equal((JSON.parse(response) as unknown[]).length, 1);
        assert.match(String(warnings.at(-1)), / Left out: output 4 \(SaveImage\)\.$/);
      } finally {
        await strict.close();
        await lax.close();
      }
      rmSync(out(), { recursive: true });
    }
  });

  it("makes the command line exit with 2, and with 0 by --partial @long", async () => {
    const graph = join(folder(), "graph.json");
    writeFileSync(graph, JSON.stringify(twoSides("{{side}}")));
    const options = ["--set", "side=none", "--out", out(), "--input", inputDir];
    const refused = await latentkit(["render", graph, ...options]);
    assert.deepEqual([refused.code, refused.stdout], [2, ""]);
    assert.match(refused.stderr, /latentkit: Node 3 \(ext imageToMask\), input "channel"/);
    const batch = await latentkit(["render", graph, ...options, "--sweep", "2.filename_prefix=a,b"]);
    assert.deepEqual([batch.code, batch.stdout], [2, ""]);
    assert.match(batch.stderr, /latentkit: Node 3 \(ext imageToMask\), input "channel"/);
    assert.ok(!existsSync(out()));
    const partial = await latentkit(["render", graph, ...options, "--partial", "--json"]);
    assert.equal(partial.code, 0, partial.stderr);
    const result = JSON.parse(partial.stdout.trimEnd().split("\n").at(-1)!) as { leftOut: string[] };
    assert.deepEqual(result.leftOut, ["4"]);
    const many = await latentkit(["render", graph, ...options, "--sweep", "2.filename_prefix=a,b", "--partial"]);
    assert.equal(many.code, 0, many.stderr);
    assert.match(many.stderr, /2 done \(2 without some outputs\)/);

    writeFileSync(graph, JSON.stringify(twoSides("none")));
    const bad = await latentkit(["validate", graph, "--input", inputDir]);
    assert.equal(bad.code, 2);
    assert.match(bad.stdout, /cannot run\.\nNode 3 .*\nWith --partial it can run and computes node 2\.\n$/);
    assert.equal((await latentkit(["validate", graph, "--input", inputDir, "--partial"])).code, 0);
  });
});
