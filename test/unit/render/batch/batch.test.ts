import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import {
  type BatchEvent,
  type BatchOptions,
  batch,
  createPreviewHost,
  createRegistry,
  decodePng,
  defineNode,
  encodePng,
  image,
  int,
  type LatentkitError,
  registry,
  render,
  Tensor,
  text,
} from "latentkit";
import { packageVersion } from "#src/base/package.js";
import { runPrepared } from "#src/render/batch/batch.js";
import { prepareBatch } from "#src/render/batch/prepare.js";
import type { BatchItem } from "#src/render/items/item.js";
import { readGraph } from "#src/render/source.js";
import { eventsUntil, refuses, rejectsAs } from "../../../helpers/errors.js";
import { filesIn, hashesIn, root, temporaryFolder } from "../../../helpers/folders.js";
import { skip } from "../../../helpers/skip.js";
import { mountDisk, remountDisk, unmountDisk } from "../../../helpers/small-disk.js";

/** A flat picture whose red is an input, and texts that fail or wait. */
const graph = {
  "1": { class_type: "Flat", inputs: { red: 0, behave: "well" } },
  "2": { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "sub/p" } },
};

const flat = defineNode({
  key: "Flat",
  inputs: { red: int({ min: 0, max: 255 }), behave: text() },
  outputs: { IMAGE: "IMAGE" },
  run: async ({ red, behave }, { signal }) => {
    if (behave === "throw") throw new Error("told to");
    if (behave === "wait") await once(signal, "abort");
    const picture = Tensor.zeros([1, 2, 2, 3]);
    for (let i = 0; i < 12; i += 3) picture.data[i] = (red + 0.5) / 255;
    return { IMAGE: picture };
  },
});
/** Fails after the picture is saved. */
const fragile = defineNode({
  key: "Fragile",
  inputs: { image: image(), fail: text() },
  outputs: {},
  outputNode: true,
  run: ({ fail }) => {
    if (fail === "yes") throw new Error("after saving");
    return [];
  },
});
const live = createRegistry([flat, fragile], registry);

type Of<T extends BatchEvent["type"]> = Extract<BatchEvent, { type: T }>;
const only = <T extends BatchEvent["type"]>(events: readonly BatchEvent[], type: T): Of<T>[] =>
  events.filter((event): event is Of<T> => event.type === type);
const reds = (n: number) => Array.from({ length: n }, (_, red) => ({ "1.red": red }));

describe("batch", () => {
  const folder = temporaryFolder();
  const out = (...names: string[]) => join(folder(), ...names);
  const journal = () => out("batch.jsonl");
  const options = (more: BatchOptions = {}): BatchOptions => ({
    registry: live,
    outputDir: out(),
    concurrency: 2,
    ...more,
  });
  async function run(items: Iterable<object> | AsyncIterable<object>, more: BatchOptions = {}, what: object = graph) {
    const events: BatchEvent[] = [];
    for await (const event of batch(what, items, options(more))) events.push(event);
    return events;
  }
  const end = (events: readonly BatchEvent[]) => {
    const { status, done, skipped, failed } = only(events, "batch-done")[0]!;
    return [status, done, skipped, failed];
  };
  const redOf = async (file: string) => (await decodePng(readFileSync(out(file)))).data[0];
  const records = () =>
    readFileSync(journal(), "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  it("renders each item under its own name, and reports events", async () => {
    const events = await run(reds(12));
    assert.deepEqual(end(events), ["success", 12, 0, 0]);
    for (let i = 0; i < 12; i++) {
      assert.equal(await redOf(`sub/p_${String(i + 1).padStart(5, "0")}_.png`), i);
    }
    const [first, ...rest] = events;
    assert.deepEqual([first!.type, only(events, "batch-start")[0]!.total], ["batch-start", 12]);
    assert.equal(rest.at(-1)!.type, "batch-done");
    const third = only(events, "item-done").find(({ index }) => index === 2)!;
    assert.deepEqual(third.values, { "1.red": 2 });
    assert.deepEqual(
      third.files.map(({ path }) => path),
      [out("sub/p_00003_.png")],
    );
    assert.equal(filesIn(out()).length, 12);
  });

  it("skips names that the folder holds, or that others took since", async () => {
    await run(reds(2));
    await run(reds(2));
    assert.deepEqual(filesIn(out("sub")), ["p_00001_.png", "p_00002_.png", "p_00003_.png", "p_00004_.png"]);
    writeFileSync(out("sub/p_00006_.png"), "another's");
    renameSync(out("sub/p_00006_.png"), out("sub/p_00006_.png.hidden"));
    async function* late() {
      yield { "1.red": 1 };
      renameSync(out("sub/p_00006_.png.hidden"), out("sub/p_00006_.png"));
      yield { "1.red": 2 };
    }
    await run(late());
    assert.equal(readFileSync(out("sub/p_00006_.png"), "utf8"), "another's");
    assert.equal(await redOf("sub/p_00006-2_.png"), 2);
  });

  it("takes a template for the names, with values of item and graph", async () => {
    await run([{ "1.red": 7 }, { "1.red": 8 }], { name: "{prefix} r{1.red} {1.behave} {number}" });
    assert.deepEqual(filesIn(out()), ["sub/p r7 well 00001_.png", "sub/p r8 well 00002_.png"]);
    // what does not tell items apart gets the number
    await run([{ "1.behave": "a/../b" }], { name: "{1.behave}" });
    assert.ok(existsSync(out("sub/a_.._b_00001_.png")), filesIn(out()).join());
    for (const name of ["", "a/b", "a\\b", "{", "a\0b", "x".repeat(101)]) {
      await refuses(() => run(reds(1), { name }), "usage.invalid", /name: expected a file name/);
    }
    for (const name of ["{nothing}", "{number} {1.rad}", "{3.red}"]) {
      await refuses(
        () => run(reds(1), { name, journal: journal() }),
        "usage.invalid",
        /name: expected fields .*received/,
      );
    }
    assert.ok(!existsSync(journal()));
    // an input that the graph leaves to the items: those that set it have a name
    const open = { ...graph, "1": { class_type: "Flat", inputs: { behave: "well" } } };
    const events = await run([{ "1.red": 1 }, {}], { name: "late {1.red}" }, open);
    assert.deepEqual(end(events), ["failed", 1, 0, 1]);
    assert.match(only(events, "item-failed")[0]!.error.message, /name: expected fields .*received \{1\.red\}/);
  });

  it("fills names from `set`, and skips files of a prefix set so", async () => {
    const set = { "1.red": 9, "2.filename_prefix": "own/q", what: "w" };
    const what = { ...graph, "3": { class_type: "Flat", inputs: { red: 0, behave: "{{what}}" } } };
    for (let i = 0; i < 2; i++)
      await run([{}], { set, name: "{prefix} {1.red} {what}", journal: out(`${i}.jsonl`) }, what);
    await run([{}], { set }, what);
    await run([{}], { set }, what);
    assert.deepEqual(filesIn(out("own")), ["q 9 w_00001-2_.png", "q 9 w_00001_.png", "q_00001_.png", "q_00002_.png"]);
    assert.match(readFileSync(out("0.jsonl"), "utf8"), /"names": \{"2": "own\/q 9 w_00001"\}/);
  });

  it("counts further images of an item in its names", async () => {
    const twice = {
      ...graph,
      "3": { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "sub/./p" } },
    };
    await run(reds(1), {}, twice);
    assert.deepEqual(filesIn(out()), ["sub/p_00001-2_.png", "sub/p_00001_.png"]);
  });

  it("takes further keys of items for names, and leaves out others if that is allowed", async () => {
    const items = [
      { "1.red": 1, title: "one", note: 1 },
      { "1.red": 1, title: "two" },
    ];
    const named = { name: "{title} {number}", extraColumns: true, journal: journal(), resume: true };
    const events = await run(items, named);
    assert.deepEqual(end(events), ["success", 2, 0, 0]);
    assert.deepEqual(filesIn(out("sub")), ["one 00001_.png", "two 00002_.png"]);
    assert.deepEqual(only(events, "item-done")[0]!.values, { "1.red": 1 });
    // another note is the same item, another title is another one
    const changed = [
      { "1.red": 1, title: "one", note: 2 },
      { "1.red": 1, title: "three" },
    ];
    assert.deepEqual(end(await run(changed, named)), ["success", 1, 1, 0]);
    const [{ error }] = only(await run(items, { name: "{title}" }), "item-failed") as [Of<"item-failed">];
    assert.match(error.message, /"note" names no node's input/);
    await refuses(() => run(items, { ...named, name: "{tilte}" }), "usage.invalid", /expected fields .*\{tilte\}/);
    async function* untold() {
      yield* items;
    }
    assert.deepEqual(end(await run(untold(), { ...named, journal: out("untold.jsonl") })), ["success", 2, 0, 0]);
  });

  it("reads common names of inputs as keys of items and of `set`", async () => {
    const what = {
      "1": { class_type: "SolidMask", inputs: { value: 1, width: 8, height: 8 } },
      "2": { class_type: "MaskToImage", inputs: { mask: ["1", 0] } },
      "3": { class_type: "SaveImage", inputs: { images: ["2", 0], filename_prefix: "p" } },
    };
    const events = await run([{ width: 16 }, {}], { set: { height: 24, width: 32 }, name: "{width}x{height}" }, what);
    assert.deepEqual(end(events), ["success", 2, 0, 0]);
    assert.deepEqual(filesIn(out()), ["16x24_00001_.png", "32x24_00002_.png"]);
    const first = only(events, "item-done").find(({ index }) => index === 0)!;
    assert.deepEqual(first.values, { "1.width": 16 });
    const both = await run([{ width: 16, "1.width": 8 }], {}, what);
    assert.match(
      only(both, "item-failed")[0]!.error.message,
      /^Item 0, 1\.width: another key of the item also sets 1\.width/,
    );
  });

  it("draws random seeds for each item, and the same again when it resumes", async () => {
    const what = {
      "1": { class_type: "RandomNoise", inputs: { noise_seed: 7 } },
      "2": graph["1"],
      "3": { class_type: "SaveImage", inputs: { images: ["2", 0], filename_prefix: "p" } },
      "4": { class_type: "PreviewAny", inputs: { source: ["1", 0] } },
    };
    const kept = { journal: journal(), resume: true, set: { "1.noise_seed": "random" } };
    const seedsOf = (events: readonly BatchEvent[], type: "item-done" | "item-skipped") =>
      only(events, type).map(({ index, values }) => [index, values["1.noise_seed"]] as const);
    const items = [{ "2.red": 1 }, { "2.red": 1 }, { "2.red": 2, seed: "random:5" }, { "2.red": 3, seed: "random:5" }];
    const first = seedsOf(await run(items, kept, what), "item-done").sort();
    assert.equal(new Set(first.map(([, seed]) => seed)).size, 3, String(first));
    assert.equal(first[2]![1], first[3]![1]);
    rmSync(out("p_00002_.png"));
    const again = await run(items, kept, what);
    assert.deepEqual(end(again), ["success", 1, 3, 0]);
    assert.deepEqual([...seedsOf(again, "item-done"), ...seedsOf(again, "item-skipped")].sort(), first);
    const other = await run(items, { ...kept, journal: out("other.jsonl") }, what);
    assert.notDeepEqual(seedsOf(other, "item-done").sort(), first);
    assert.deepEqual(
      records().flatMap(({ type, item, values }) =>
        type === "intent" && item === 0 ? [(values as Record<string, unknown>)["1.noise_seed"]] : [],
      ),
      [first[0]![1]],
    );
  });

  it("fails items that leave a placeholder unfilled, at once if keys are known", async () => {
    const what = {
      "1": { class_type: "Flat", inputs: { red: 0, behave: "{{how}} {{well}}" } },
      "2": graph["2"],
      "3": { class_type: "Flat", inputs: { red: 0, behave: "{{nobody}}" } },
    };
    const items = [{ how: "very" }, { how: "very", well: "well" }, { "1.behave": "well" }];
    const events = await run(items, { journal: journal() }, what);
    assert.deepEqual(end(events), ["failed", 2, 0, 1]);
    const [{ index, error }] = only(events, "item-failed") as [Of<"item-failed">];
    assert.deepEqual([index, error.code], [0, "input.missing"]);
    assert.match(
      error.message,
      /^Node 1, input "behave": no value is given for \{\{well\}\}; set well, or set it to \{\{well\}\} /,
    );
    // node 3 does not run, and characters that are meant stand for themselves
    assert.deepEqual(end(await run([{ well: "x" }], { set: { how: "{{how}}" } }, what)), ["success", 1, 0, 0]);
    const many = [{ "1.behave": "well" }];
    assert.deepEqual(end(await run(many, { targets: ["2", "3"] }, what)), ["failed", 0, 0, 1]);
    const kept = options({ journal: out("known.jsonl") });
    await refuses(() => prepareBatch(readGraph(what), kept, { keys: ["how"] }), "input.missing", /\{\{well\}\}/);
    assert.ok(!existsSync(out("known.jsonl")));
  });

  it("records an item that fails, removes its files, and goes on", async () => {
    const what = { ...graph, "3": { class_type: "Fragile", inputs: { image: ["1", 0], fail: "no" } } };
    const items = [
      { "1.red": 1 },
      { "3.fail": "yes" },
      { "1.behave": "throw" },
      { "1.red": 300 },
      { "1.rad": 1 },
      { "1.red": 5 },
    ];
    const events = await run(items, { journal: journal() }, what);
    assert.deepEqual(end(events), ["failed", 2, 0, 4]);
    const failures = Object.fromEntries(only(events, "item-failed").map(({ index, error }) => [index, error.message]));
    assert.match(failures[1]!, /Node 3 \(Fragile\).*after saving/);
    assert.match(failures[2]!, /Node 1 \(Flat\).*told to/);
    assert.match(failures[3]!, /input "red": expected a whole number from 0 to 255, received 300/);
    assert.match(failures[4]!, /no input "rad".*Did you mean 1\.red\?/);
    assert.deepEqual(filesIn(out()), ["batch.jsonl", "sub/p_00001_.png", "sub/p_00006_.png"]);
    assert.deepEqual(
      records()
        .flatMap(({ type, item }) => (type === "failed" ? [item] : []))
        .sort(),
      [1, 2, 3, 4],
    );
  });

  it("removes texts and pictures of a failed item; a retry appends once", async () => {
    const saveText = (inputs: object, overwrite: boolean) => ({
      class_type: "ext saveTextLazy",
      inputs: { text: "t", output_file_path: "texts", file_extension: "txt", overwrite, ...inputs },
    });
    let calls = 0;
    const shaky = defineNode({
      key: "Shaky",
      inputs: { image: image(), fail: text() },
      outputs: {},
      outputNode: true,
      run: ({ fail }) => {
        if (fail === "yes" || (fail === "once" && calls++ === 0)) throw new Error("after saving");
        return [];
      },
    });
    const what = {
      "1": graph["1"],
      "2": saveText({ file_name: "{{name}}", image: ["1", 0] }, false),
      "3": saveText({ file_name: "log", text: "{{name}};", image: ["2", 1] }, false),
      "4": saveText({ file_name: "last", text: "{{name}}", image: ["3", 1] }, true),
      "5": { class_type: "Shaky", inputs: { image: ["4", 1], fail: "{{fail}}" } },
    };
    const items = [
      { name: "a", fail: "no" },
      { name: "b", fail: "yes" },
      { name: "c", fail: "once" },
    ];
    const more = { registry: createRegistry([shaky], live), retry: 1, concurrency: 1, journal: journal() };
    const events = await run(items, more, what);
    assert.deepEqual(end(events), ["failed", 2, 0, 1]);
    assert.deepEqual(
      filesIn(out("texts")).filter((name) => name.endsWith(".txt")),
      ["a.txt", "c.txt", "last.txt", "log.txt"],
    );
    assert.ok(!existsSync(out("texts/b.png")));
    assert.equal(readFileSync(out("texts/log.txt"), "utf8"), "a;c;");
    assert.equal(readFileSync(out("texts/last.txt"), "utf8"), "c");
    await run(items, { ...more, resume: true }, what);
    assert.equal(readFileSync(out("texts/log.txt"), "utf8"), "a;c;");
  });

  it("fails an item whose text cannot be written, also in a thread", async () => {
    const inputs = { text: "t", output_file_path: "texts", file_extension: "txt", file_name: "{{name}}" };
    const what = {
      "1": { class_type: "LoadImage", inputs: { image: "dawn.png" } },
      "2": { class_type: "ext saveTextLazy", inputs: { ...inputs, overwrite: true, image: ["1", 0] } },
      "3": { class_type: "SaveImage", inputs: { images: ["2", 1], filename_prefix: "p" } },
    };
    for (const registry of [live, undefined]) {
      const outputDir = out(registry === undefined ? "threads" : "live");
      mkdirSync(join(outputDir, "texts/b.txt"), { recursive: true });
      const more = { registry, outputDir, journal: join(outputDir, "j.jsonl"), inputDir: join(root, "examples/input") };
      const events = await run([{ name: "a" }, { name: "b" }], more, what);
      assert.deepEqual(end(events), ["failed", 1, 0, 1]);
      const [{ error }] = only(events, "item-failed") as [Of<"item-failed">];
      assert.deepEqual(
        [error.code, error.message],
        ["file.write-failed", 'Cannot write "b.txt": a folder has that name (EISDIR).'],
      );
      assert.deepEqual(filesIn(outputDir), ["j.jsonl", "p_00001_.png", "texts/a.png", "texts/a.txt"]);
    }
  });

  it("retries items that failed while they ran, not invalid ones", async () => {
    let calls = 0;
    const shaky = defineNode({
      key: "Flat",
      inputs: { red: int({ min: 0, max: 255 }), behave: text() },
      outputs: { IMAGE: "IMAGE" },
      run: (inputs, context) => {
        if (++calls < 3) throw new Error("not yet");
        return flat.run(inputs, context) as never;
      },
    });
    const more = { registry: createRegistry([shaky], live), retry: 2, concurrency: 1 };
    const events = await run([{ "1.red": 4 }, { "1.red": -1 }], more);
    assert.deepEqual(end(events), ["failed", 1, 0, 1]);
    assert.deepEqual(
      only(events, "item-failed").map(({ index, attempt, willRetry }) => [index, attempt, willRetry]),
      [
        [0, 1, true],
        [0, 2, true],
        [1, 1, false],
      ],
    );
    assert.equal(await redOf("sub/p_00001_.png"), 4);
  });

  it("uses a disk cache across batches, and writes every file", async () => {
    let runs = 0;
    const slow = defineNode({
      key: "Flat",
      cacheVersion: "1",
      inputs: flat.inputs,
      outputs: flat.outputs,
      run: async (inputs, context) => {
        runs++;
        await new Promise((resolve) => setTimeout(resolve, 20));
        return flat.run(inputs, context);
      },
    });
    const registry = createRegistry([slow], live);
    const host = createPreviewHost();
    const cacheDir = out("cache");
    for (const name of ["first", "second"]) await run(reds(3), { registry, host, cacheDir, outputDir: out(name) });
    assert.equal(runs, 3);
    assert.deepEqual(hashesIn(out("second")), hashesIn(out("first")));
    assert.equal(filesIn(out("second")).length, 3);
  });

  it("failFast starts no further item", async () => {
    const items = [{ "1.behave": "throw" }, ...reds(100)];
    const events = await run(items, { failFast: true, concurrency: 1 });
    const [status, done, , failed] = end(events);
    assert.deepEqual([status, failed], ["failed", 1]);
    assert.ok((done as number) < 5, `${done} were done`);
  });

  it("resumes: skips finished items, repeats failed and changed ones", async () => {
    const items = [{ "1.red": 1 }, { "1.behave": "throw" }, { "1.red": 3 }];
    await run(items, { journal: journal() });
    const mended = [{ "1.red": 1 }, { "1.red": 2 }, { "1.red": 3 }, { "1.red": 4 }];
    const events = await run(mended, { journal: journal(), resume: true });
    assert.deepEqual(end(events), ["success", 2, 2, 0]);
    assert.equal(only(events, "batch-start")[0]!.finished, 2);
    assert.deepEqual(
      only(events, "item-skipped").map(({ index }) => index),
      [0, 2],
    );
    assert.equal(filesIn(out("sub")).join(), "p_00001_.png,p_00002_.png,p_00003_.png,p_00004_.png");
    for (let i = 1; i <= 4; i++) assert.equal(await redOf(`sub/p_0000${i}_.png`), i);
    assert.deepEqual(end(await run(mended, { journal: journal(), resume: true })), ["success", 0, 4, 0]);
  });

  it("resumes: renders removed files again under their names", async () => {
    const twice = {
      ...graph,
      "3": { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "sub/./p" } },
      "4": {
        class_type: "ext saveTextLazy",
        inputs: { text: "t;", output_file_path: "sub", file_name: "log", file_extension: "txt", overwrite: false },
      },
    };
    const targets = ["2", "3", "4"];
    await run(reds(4), { journal: journal(), targets }, twice);
    const before = hashesIn(out("sub"));
    assert.equal(Object.keys(before).length, 9);
    rmSync(out("sub/p_00002_.png"));
    rmSync(out("sub/p_00003-2_.png"));
    const events = await run(reds(4), { journal: journal(), resume: true, targets }, twice);
    assert.deepEqual(end(events), ["success", 2, 2, 0]);
    assert.equal(only(events, "batch-start")[0]!.finished, 2);
    assert.match(only(events, "warning")[0]!.message, /^2 items marked as finished have missing or truncated files;/);
    assert.deepEqual(hashesIn(out("sub")), before);
    // a picture that was changed since must not be overwritten
    rmSync(out("sub/p_00004_.png"));
    writeFileSync(out("sub/p_00004-2_.png"), "retouched");
    assert.deepEqual(end(await run(reds(4), { journal: journal(), resume: true, targets }, twice)), [
      "success",
      1,
      3,
      0,
    ]);
    assert.equal(readFileSync(out("sub/p_00004-2_.png"), "utf8"), "retouched");
    assert.ok(existsSync(out("sub/p_00004_.png")) && existsSync(out("sub/p_00004-3_.png")));
    rmSync(out("sub"), { recursive: true });
    assert.deepEqual(end(await run(reds(4), { journal: journal(), resume: true, targets }, twice)), [
      "success",
      4,
      0,
      0,
    ]);
    assert.deepEqual(hashesIn(out("sub")), before);
    // a journal of another batch is none to write over, even if its folder is empty
    rmSync(out("sub"), { recursive: true });
    await refuses(() => run(reds(4), { journal: journal(), resume: true }), "journal.refused", /a different graph/);
  });

  it("keeps the other files of a finished item with second links", async () => {
    const what = { ...graph, "3": { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "q" } } };
    await run(reds(1), { journal: journal() }, what);
    const { id } = records()[0] as { id: string };
    linkSync(out("q_00001_.png"), out(`.latentkit-${id}-0-0a.tmp`));
    rmSync(out("sub/p_00001_.png"));
    assert.deepEqual(end(await run(reds(1), { journal: journal(), resume: true }, what)), ["success", 1, 0, 0]);
    assert.deepEqual(filesIn(out()), ["batch.jsonl", "q_00001_.png", "sub/p_00001_.png"]);
  });

  it("renders pictures that a power failure has cut again", async () => {
    const targets = ["2"];
    await run(reds(5), { journal: journal(), targets });
    const before = hashesIn(out("sub"));
    const path = (item: number) => out(`sub/p_0000${item}_.png`);
    const whole = (item: number) => readFileSync(path(item));
    writeFileSync(path(1), "");
    writeFileSync(path(2), whole(2).subarray(0, 40));
    writeFileSync(path(3), Buffer.concat([whole(3).subarray(0, 40), Buffer.alloc(whole(3).length - 40)]));
    const retouched = await encodePng({ data: new Uint8Array(3), width: 1, height: 1, channels: 3 });
    writeFileSync(path(4), retouched);
    const events = await run(reds(5), { journal: journal(), resume: true, targets });
    assert.deepEqual(end(events), ["success", 3, 2, 0]);
    assert.match(only(events, "warning")[0]!.message, /^3 items marked as finished have missing or truncated files/);
    assert.deepEqual(whole(4), retouched, "another picture must not be overwritten");
    const { "p_00004_.png": _, ...others } = before;
    const { "p_00004_.png": __, ...after } = hashesIn(out("sub"));
    assert.deepEqual(after, others);
  });

  it("does not render removed previews again", async () => {
    const what = { ...graph, "3": { class_type: "PreviewImage", inputs: { images: ["1", 0] } } };
    await run(reds(2), { journal: journal() }, what);
    rmSync(out("temp"), { recursive: true });
    assert.deepEqual(end(await run(reds(2), { journal: journal(), resume: true }, what)), ["success", 0, 2, 0]);
  });

  it("finds finished items wherever they stand, and numbers new ones behind", async () => {
    const first = await run([{ "1.red": 1 }, { "1.red": 2 }, { "1.behave": "throw" }], { journal: journal() });
    const earlier = only(first, "item-done").sort((a, b) => a.index - b.index);
    const before = hashesIn(out("sub"));
    const more = [{ "1.red": 9 }, { "1.red": 1 }, { "1.red": 2 }, { "1.red": 3 }, { "1.red": 1 }];
    const events = await run(more, { journal: journal(), resume: true });
    assert.deepEqual(end(events), ["success", 3, 2, 0]);
    assert.deepEqual(
      only(events, "item-skipped").map(({ index, position, values, files }) => [index, position, values, files]),
      [
        [1, 0, { "1.red": 1 }, earlier[0]!.files],
        [2, 1, { "1.red": 2 }, earlier[1]!.files],
      ],
    );
    const after = hashesIn(out("sub"));
    for (const [name, hash] of Object.entries(before)) assert.equal(after[name], hash);
    const names = Object.fromEntries(
      only(events, "item-done").map(({ index, files: [file] }) => [index, file!.filename]),
    );
    assert.deepEqual(names, { 0: "p_00004_.png", 3: "p_00005_.png", 4: "p_00006_.png" });
    const again = await run(more.reverse(), { journal: journal(), resume: true });
    assert.deepEqual(end(again), ["success", 0, 5, 0]);
    assert.deepEqual(hashesIn(out("sub")), after);
  });

  it("writes the records that version 0.1.0 wrote, and resumes its journal", async () => {
    const hash = "sha256:a703b2f6466d29a0899c7aec4f49c88a4ba9b46f6b234b920bfd9a26ed4db5eb";
    const id = "3ceba3b2a059";
    // keys hang on the version, and are those of the journal that was kept
    const linesOf = (version: string) => {
      const key = (values: string) =>
        createHash("sha256").update(`${hash} ${version} ${values}`).digest("hex").slice(0, 16);
      const [first, second] = [key('[["1.red", 1]]'), key('[["1.behave", "throw"]]')];
      const third = key('[["1.behave", "well"], ["1.red", 3]]');
      return [
        `{"type": "batch", "version": 1, "engine": "${version}", "graph": "${hash}", "id": "${id}", "first": 1}`,
        `{"type": "intent", "item": 0, "key": "${first}", "values": {"1.red": 1}, "names": {"2": "sub/p_00001"}}`,
        `{"type": "intent", "item": 1, "key": "${second}", "values": {"1.behave": "throw"}, "names": {"2": "sub/p_00002"}}`,
        `{"type": "intent", "item": 2, "key": "${third}", "values": {"1.red": 3, "1.behave": "well"}, "names": {"2": "sub/p_00003"}}`,
        `{"type": "done", "item": 0, "key": "${first}", "files": ["sub/p_00001_.png"], "ms": 5}`,
        `{"type": "failed", "item": 1, "key": "${second}", "attempt": 1, "error": {"code": "node.failed", "message": "Node 1 (Flat): told to"}}`,
        `{"type": "done", "item": 2, "key": "${third}", "files": ["sub/p_00003_.png"], "ms": 5}`,
        '{"type": "end", "done": 2, "skipped": 0, "failed": 1}',
      ];
    };
    const [, earlier] = linesOf("0.1.0");
    assert.ok(earlier!.includes('"key": "9a29e1adef6ee767"'));
    const items = [{ "1.red": 1 }, { "1.behave": "throw" }, { "1.red": 3, "1.behave": "well" }];
    await run(items, { journal: journal() });
    const lines = linesOf(packageVersion());
    const text = readFileSync(journal(), "utf8")
      .replace(/"id": "[0-9a-f]{12}"/, `"id": "${id}"`)
      .replace(/"ms": \d+/g, '"ms": 5');
    assert.deepEqual(text.trimEnd().split("\n").sort(), [...lines].sort());
    writeFileSync(journal(), `${lines.join("\n")}\n`);
    const events = await run(items, { journal: journal(), resume: true });
    assert.deepEqual(end(events), ["failed", 0, 2, 1]);
    const [, { files }] = only(events, "item-skipped") as [unknown, Of<"item-skipped">];
    const path = out("sub/p_00003_.png");
    assert.deepEqual(files, [{ path, filename: "p_00003_.png", subfolder: "sub", type: "output" }]);
  });

  it("tells an unreadable item from a finished one without values", async () => {
    await run([{}], { journal: journal() });
    assert.deepEqual(end(await run([5, {}] as never, { journal: journal(), resume: true })), ["failed", 0, 1, 1]);
  });

  it("refuses a journal whose paths leave the output folder", async () => {
    await run(reds(2), { journal: journal(), outputDir: out("o") });
    const text = readFileSync(journal(), "utf8");
    writeFileSync(out("secret.png"), "x");
    for (const path of ["../secret.png", out("secret.png"), "sub/../../secret.png", "..\\\\secret.png", "C:\\\\x"]) {
      writeFileSync(
        journal(),
        text.replace("sub/p_00002_.png", () => path),
      );
      const start = () => run(reds(2), { journal: journal(), outputDir: out("o"), resume: true });
      await refuses(start, "journal.refused", /line [45]: expected paths inside the output folder, received "/);
    }
    for (const files of ["5", '"a.png"', "[5]", "{}"]) {
      writeFileSync(
        journal(),
        text.replace(/"files": \[[^\]]*\]/, () => `"files": ${files}`),
      );
      const start = () => run(reds(2), { journal: journal(), outputDir: out("o"), resume: true });
      await refuses(start, "journal.refused", /line [345]: expected paths inside the output folder/);
    }
  });

  it("refuses a journal without resume, of another batch, and resume without one", async () => {
    await run(reds(1), { journal: journal() });
    const before = hashesIn(out());
    const again =
      (more: BatchOptions, what: object = graph) =>
      () =>
        run(reds(2), { journal: journal(), ...more }, what);
    await refuses(
      again({}),
      "journal.refused",
      /batch\.jsonl: it belongs to an earlier batch; continue that batch with resume, name another journal, or remove this one\.$/,
    );
    const other = { ...graph, "1": { class_type: "Flat", inputs: { red: 1, behave: "well" } } };
    await refuses(again({ resume: true }, other), "journal.refused", /belongs to a different graph/);
    await refuses(again({ resume: true, name: "{index}" }), "journal.refused", /different options/);
    await refuses(again({ resume: true, metadata: "none" }), "journal.refused", /different options/);
    await refuses(() => run(reds(1), { resume: true }), "usage.invalid", /expected a journal/);
    const lines = readFileSync(journal(), "utf8").replace(/"engine": "[^"]*"/, '"engine": "0.0.1"');
    assert.deepEqual(hashesIn(out()), before);
    writeFileSync(journal(), lines);
    await refuses(again({ resume: true }), "journal.refused", /it was written by latentkit 0\.0\.1/);
  });

  it("refuses a journal that another process has locked", async () => {
    const script = out("other.mjs");
    writeFileSync(
      script,
      `import { batch, createRegistry, defineNode, registry } from ${JSON.stringify(pathToFileURL(join(root, "dist/index.js")).href)};
       const wait = defineNode({ key: "Flat", inputs: {}, outputs: { IMAGE: "IMAGE" }, run: () => new Promise(() => setTimeout(() => {}, 1e9)) });
       const options = { registry: createRegistry([wait], registry), outputDir: ${JSON.stringify(out())}, journal: ${JSON.stringify(journal())} };
       for await (const event of batch(${JSON.stringify(graph)}, [{}], options)) process.stdout.write(event.type + "\\n");`,
    );
    const child = spawn(process.execPath, [script], { stdio: ["ignore", "pipe", "inherit"] });
    try {
      for await (const chunk of child.stdout) if (String(chunk).includes("item-start")) break;
      await refuses(() => run(reds(1), { journal: journal(), resume: true }), "journal.refused", /another process/);
    } finally {
      child.kill("SIGKILL");
      await once(child, "close");
    }
    // the claim ended with the process; its item was cut
    assert.deepEqual(end(await run([{}], { journal: journal(), resume: true })), ["success", 1, 0, 0]);
  });

  it("loses no file if two batches share a folder", async () => {
    const both = await Promise.all([
      run(reds(40), { journal: out("a.jsonl") }),
      run(reds(40), { journal: out("b.jsonl") }),
    ]);
    const files = both.flatMap((events) => only(events, "item-done").flatMap(({ files: [file] }) => file!.path));
    assert.equal(new Set(files).size, 80);
    assert.equal(filesIn(out("sub")).length, 80);
  });

  it("drain finishes running items, signal does not; both resume", async () => {
    for (const kind of ["drain", "signal"] as const) {
      const place = out(kind);
      const stop = new AbortController();
      const items = [
        { "1.red": 1 },
        { "1.red": 2 },
        { "1.red": 3, "1.behave": kind === "drain" ? "well" : "wait" },
        ...reds(30),
      ];
      const more = { outputDir: place, journal: join(place, "j.jsonl"), concurrency: 1, [kind]: stop.signal };
      const events = await eventsUntil(stop.signal, batch(graph, items, options(more)), (event) => {
        if (event.type === "item-start" && event.index === 2) stop.abort();
      });
      const [status, done] = end(events);
      assert.deepEqual([status, done], ["interrupted", kind === "drain" ? 3 : 2]);
      assert.equal(filesIn(join(place, "sub")).length, done as number);
      if (kind === "signal") items[2] = { "1.red": 3 };
      const rest = { outputDir: place, journal: join(place, "j.jsonl"), resume: true };
      assert.equal(only(await run(items, rest), "batch-done")[0]!.status, "success");
      assert.equal(filesIn(join(place, "sub")).length, 33);
    }
  });

  for (const where of ["another disk", "the same disk"]) {
    it(`is cut by a full disk, and resumes with room, its journal on ${where}`, async function () {
      const disk = out("disk");
      mkdirSync(disk);
      if (!mountDisk(disk, "size=128k")) skip(this, "this user may not mount a small disk");
      try {
        const path = where === "the same disk" ? join(disk, "batch.jsonl") : journal();
        const small = { outputDir: disk, journal: path, retry: 3 };
        const events: BatchEvent[] = [];
        const cut = async () => {
          for await (const event of batch(graph, reds(100), options(small))) events.push(event);
        };
        await assert.rejects(cut(), ({ code, details }: LatentkitError) => {
          assert.deepEqual([code, details.systemCode], ["file.write-failed", "ENOSPC"]);
          return true;
        });
        const [{ status, done, failed, error }] = only(events, "batch-done") as [Of<"batch-done">];
        assert.deepEqual([status, failed, error?.details.systemCode], ["interrupted", 0, "ENOSPC"]);
        assert.ok(done > 0 && done < 100, `${done} done`);
        assert.equal(only(events, "item-done").length, done);
        assert.deepEqual(only(events, "item-failed"), []);
        remountDisk(disk, "size=8m");
        const again = end(await run(reds(100), { ...small, resume: true }));
        // a record may have reached the full disk while the one behind it did not
        assert.ok(Number(again[2]) >= done, again.join());
        assert.deepEqual([again[0], Number(again[1]) + Number(again[2]), again[3]], ["success", 100, 0]);
        assert.equal(filesIn(join(disk, "sub")).length, 100);
      } finally {
        unmountDisk(disk);
      }
    });
  }

  it("refuses options of a wrong type in one sentence, before anything is written", async () => {
    const wrong: Record<string, [unknown, RegExp]> = {
      name: [5, /^name: expected a string, received 5\.$/],
      outputDir: [5, /^outputDir: expected the path of a folder, received 5\.$/],
      inputDir: ["", /^inputDir: expected the path of a folder, received ""\.$/],
      journal: [5, /^journal: expected the path of a file, received 5\.$/],
      resume: ["yes", /^resume: expected true or false, received "yes"\.$/],
      failFast: [1, /^failFast: expected true or false/],
      total: ["x", /^total: expected a whole number, received "x"\.$/],
      drain: [5, /^drain: expected an AbortSignal, received 5\.$/],
      signal: [{}, /^signal: expected an AbortSignal, received an object\.$/],
      registry: [5, /^registry: expected a registry made by createRegistry, received 5\.$/],
      host: ["preview", /^host: expected a host, such as createPreviewHost returns, received "preview"\.$/],
      setup: ["./setup.mjs", /^setup: expected the URL of a module \(pathToFileURL makes one\), received/],
      set: [5, /^set: expected an object of key-value pairs, received 5\.$/],
      targets: ["2", /^targets: expected a list of node ids, received "2"\.$/],
      classAliases: [{ a: 5 }, /^classAliases: expected an object that maps names to names, received an object\.$/],
      extraPnginfo: [[], /^extraPnginfo: expected an object of key-value pairs, received a list of 0\.$/],
      config: ["file", /^config: expected an object/],
      clock: [5, /^clock: expected a function, received 5\.$/],
      fetch: [5, /^fetch: expected a function, received 5\.$/],
      cache: [{}, /^cache: expected a cache, as createCache makes one/],
      onEvent: [{}, /^onEvent: expected a function/],
    };
    for (const [option, [value, pattern]] of Object.entries(wrong)) {
      const ofRender = ["cache", "onEvent"].includes(option);
      if (!ofRender)
        await refuses(() => run(reds(1), { journal: journal(), [option]: value }), "usage.invalid", pattern);
      const ofBatch = ["name", "journal", "resume", "failFast", "total", "drain"].includes(option);
      if (!ofBatch)
        await refuses(
          () => render(graph, { registry: live, outputDir: out(), [option]: value }),
          "usage.invalid",
          pattern,
        );
    }
    for (const none of [null, 5, "x"] as never[]) {
      await refuses(
        async () => void batch(graph, reds(1), none),
        "usage.invalid",
        /^batch: expected an object of options/,
      );
      await refuses(() => render(graph, none), "usage.invalid", /^render: expected an object of options/);
    }
    for (const set of [new Map([["1.red", 1]]), new Date()] as never[]) {
      await refuses(() => run(reds(1), { set }), "usage.invalid", /^set: expected an object of key-value pairs/);
    }
    await refuses(() => run(reds(1), { set: { "1.red": () => 5 } }), "usage.invalid", /^set, 1\.red: expected a text/);
    assert.deepEqual(filesIn(out()), []);
  });

  it("fails an item whose values are not JSON, naming item and key", async () => {
    const strange = [
      { "1.red": 1 },
      { "1.red": () => 1 },
      { "1.behave": Symbol("x") },
      { "1.red": undefined },
      { "1.red": Number.NaN },
      { "1.red": { at: [new Date()] } },
      {
        get "1.red"(): number {
          throw new Error("no such row");
        },
      },
      new Map([["1.red", 1]]),
      { "1.red": 8n },
    ];
    const events = await run(strange, { journal: journal() });
    assert.deepEqual(end(events), ["failed", 2, 0, 7]);
    const failures = only(events, "item-failed").sort((a, b) => a.index - b.index);
    for (const { error } of failures) assert.equal(error.code, "items.invalid");
    const expected = "expected a text, a number, true, false, null, or a list or plain object of these, received";
    assert.deepEqual(
      failures.map(({ error }) => error.message),
      [
        `Item 1, 1.red: ${expected} a function.`,
        `Item 2, 1.behave: ${expected} a symbol.`,
        `Item 3, 1.red: ${expected} undefined.`,
        `Item 4, 1.red: ${expected} NaN.`,
        `Item 5, 1.red: ${expected} a Date.`,
        "Item 6, 1.red: reading the value failed: no such row",
        "Item 7: expected an object of values, received a Map.",
      ],
    );
    assert.deepEqual(filesIn(out("sub")), ["p_00001_.png", "p_00009_.png"]);
  });

  describe("a node that ignores the abort", () => {
    const what = {
      "1": graph["1"],
      "2": { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "first" } },
      "3": { class_type: "Deaf", inputs: { image: ["1", 0] } },
      "4": { class_type: "SaveImage", inputs: { images: ["3", 0], filename_prefix: "late" } },
    };
    /** A registry with the node, when it runs, and what lets it go on. */
    function deafNodes() {
      let wake = () => {};
      let enter = () => {};
      const entered = new Promise<void>((resolve) => {
        enter = resolve;
      });
      const deaf = defineNode({
        key: "Deaf",
        inputs: { image: image() },
        outputs: { image: "IMAGE" },
        run: async ({ image }) => {
          await new Promise<void>((resolve) => {
            wake = resolve;
            enter();
          });
          return { image };
        },
      });
      return { registry: createRegistry([deaf], live), entered, wake: () => wake() };
    }

    async function abortRender() {
      const { registry, entered, wake } = deafNodes();
      const stop = new AbortController();
      const types: string[] = [];
      const onEvent = ({ type }: { type: string }) => void types.push(type);
      const rendering = render(what, { registry, outputDir: out("one"), signal: stop.signal, onEvent });
      await entered;
      const started = performance.now();
      stop.abort();
      await rejectsAs(stop.signal, rendering);
      assert.deepEqual(types.slice(-2), ["interrupted", "run-done"]);
      const ms = performance.now() - started;
      assert.ok(ms > 1900, `${ms} ms`);
      wake();
      await new Promise((resolve) => setTimeout(resolve, 100));
      assert.deepEqual(filesIn(out("one")), ["first_00001_.png"]);
      assert.equal(types.at(-1), "run-done");
    }

    async function stopBatch(kind: "signal" | "return") {
      const { registry, entered, wake } = deafNodes();
      const events: BatchEvent[] = [];
      const stop = new AbortController();
      const more = { registry, outputDir: out(kind), journal: out(`${kind}.jsonl`), signal: stop.signal };
      const follow = async () => {
        for await (const event of batch(what, reds(3), options(more))) {
          events.push(event);
          if (event.type !== "item-start") continue;
          await entered;
          if (kind === "return") break;
          stop.abort();
        }
      };
      if (kind === "return") await follow();
      else await rejectsAs(stop.signal, follow());
      if (kind === "signal") assert.deepEqual(end(events), ["interrupted", 0, 0, 0]);
      wake();
      await new Promise((resolve) => setTimeout(resolve, 100));
      assert.deepEqual(filesIn(out(kind)), []);
    }

    it("is left alone after two seconds, and writes nothing then", () =>
      Promise.all([abortRender(), stopBatch("signal"), stopBatch("return")]));
  });

  it("stops when its consumer stops listening", async () => {
    for await (const event of batch(graph, reds(1000), options())) if (event.type === "item-done") break;
    const count = filesIn(out()).length;
    assert.ok(count < 50, `${count} files`);
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal(filesIn(out()).length, count);
  });

  it("reads no further ahead than it needs to", async () => {
    let read = 0;
    async function* endless() {
      for (;;) {
        read++;
        yield { "1.red": 1 };
      }
    }
    for await (const event of batch(graph, endless(), options())) if (event.type === "item-done") break;
    assert.ok(read < 100, `${read} items were read`);
    const kept = options({ journal: journal() });
    for await (const event of batch(graph, endless(), kept)) if (event.type === "item-done") break;
    assert.ok(read < 1000, `${read} items were read`);
  });

  it("ends although its source never returns", async () => {
    async function* stalls() {
      yield { "1.red": 1 };
      await new Promise(() => {});
    }
    for (const kind of ["drain", "signal"] as const) {
      const stop = new AbortController();
      const events = await eventsUntil(
        stop.signal,
        batch(graph, stalls(), options({ [kind]: stop.signal })),
        (event) => void (event.type === "item-done" && stop.abort()),
      );
      assert.deepEqual(end(events), ["interrupted", 1, 0, 0]);
    }
    for await (const event of batch(graph, stalls(), options())) if (event.type === "item-done") break;
  });

  it("causes no warning of listeners with many items at once", async () => {
    const warnings: Error[] = [];
    const hear = (warning: Error) => warnings.push(warning);
    process.on("warning", hear);
    await run(reds(100), { concurrency: 40 });
    await new Promise((resolve) => setImmediate(resolve));
    process.off("warning", hear);
    assert.deepEqual(warnings, []);
  });

  it("names file and line of an item, and goes on after a faulty one", async () => {
    async function* items(): AsyncGenerator<BatchItem> {
      yield { values: { "1.red": "400" }, origin: { file: "items.csv", line: 7, columns: { "1.red": 3 } } };
      yield { values: {}, fault: (await refuses(() => batch(graph, 5 as never), "usage.invalid")) as never };
      yield { values: { "1.red": "9" }, origin: { file: "items.csv", line: 9 } };
    }
    const events: BatchEvent[] = [];
    for await (const event of runPrepared(prepareBatch(readGraph(graph), options(), {}), items())) events.push(event);
    assert.deepEqual(end(events), ["failed", 1, 0, 2]);
    const first = only(events, "item-failed").find(({ index }) => index === 0);
    assert.match(first!.error.message, /^items\.csv, line 7, column 3: Node 1 \(Flat\), input "red": expected/);
    const strange = await run([5, null, [1]] as never);
    assert.deepEqual(end(strange), ["failed", 0, 0, 3]);
  });

  it("throws the error of its source once running items have ended", async () => {
    async function* broken() {
      yield { "1.red": 1 };
      throw new RangeError("the source broke");
    }
    await assert.rejects(() => run(broken(), { journal: journal() }), /the source broke/);
    assert.deepEqual(end(await run(reds(2).slice(1), { journal: journal(), resume: true })), ["success", 0, 1, 0]);
  });

  it("refuses wrong graphs and options before anything is written", async () => {
    await refuses(() => run(reds(1), {}, { "1": { class_type: "Flut", inputs: {} } }), "graph.unknown-class", /Flat/);
    await refuses(() => run(reds(1), { concurrency: 0 }), "value.out-of-range", /1 to 256/);
    await refuses(() => run(reds(1), { targets: ["9"] }), "graph.unknown-target", /received "9"/);
    await refuses(() => run(reds(1), { set: { "9.x": 1 } }), "usage.invalid", /Cannot set a value/);
    await refuses(() => run(reds(1), { redact: ["9.x"] }), "usage.invalid", /Cannot redact a value/);
    await refuses(() => run(reds(1), { retry: 1.5 }), "value.out-of-range", /retry/);
    await refuses(() => run(reds(1), { metadata: "some" as "full" }), "usage.invalid", /metadata/);
    mkdirSync(out("folder.jsonl"));
    await refuses(() => run(reds(1), { journal: out("folder.jsonl") }), "file.write-failed");
    assert.deepEqual(filesIn(out()), []);
  });

  describe("in threads", () => {
    const setup = () => {
      const path = out("setup.mjs");
      writeFileSync(
        path,
        `import { createRegistry, defineNode, int, registry, Tensor } from ${JSON.stringify(pathToFileURL(join(root, "dist/index.js")).href)};
         const exits = defineNode({ key: "Flat", inputs: { red: int() }, outputs: { IMAGE: "IMAGE" }, run: ({ red }) => {
           if (red === 13) process.exit(1);
           return { IMAGE: Tensor.full([1, 2, 2, 3], red / 255) };
         } });
         export default () => ({ registry: createRegistry([exits], registry) });`,
      );
      return pathToFileURL(path);
    };
    const threaded = { "1": { class_type: "Flat", inputs: { red: 0 } }, "2": graph["2"] };

    it("gives the same files with one thread and with three", async () => {
      const path = join(root, "test/graphs/inject-noise-to-latent.json");
      const items = Array.from({ length: 12 }, (_, seed) => ({ "4.seed": seed, scene: "a lake" }));
      for (const concurrency of [1, 3]) {
        const outputDir = out(String(concurrency));
        const events: BatchEvent[] = [];
        for await (const event of batch(path, items, { outputDir, concurrency })) events.push(event);
        assert.deepEqual(end(events), ["success", 12, 0, 0]);
      }
      assert.deepEqual(hashesIn(out("1")), hashesIn(out("3")));
      assert.equal(filesIn(out("1")).length, 12);
    });

    it("fails before the first item with its setup module or graph", async () => {
      const write = (name: string, code: string) => {
        writeFileSync(out(name), code);
        return pathToFileURL(out(name));
      };
      const wrong: [URL, RegExp][] = [
        [pathToFileURL(out("none.mjs")), /Setup module .*none\.mjs: Cannot find module/],
        [write("throws.mjs", "export default () => { throw new Error('no model'); }"), /throws\.mjs: no model\.$/],
        [write("five.mjs", "export default () => ({ registry: 5 })"), /five\.mjs: registry: expected a registry/],
      ];
      const host = createPreviewHost();
      for (const [setup, pattern] of wrong) {
        for (const more of [{}, { host }]) {
          const start = () => run(reds(3), { registry: undefined, setup, journal: journal(), ...more }, threaded);
          const error = await refuses(start, "setup.failed", pattern);
          assert.equal(error.meaning.exit, 2);
        }
      }
      const other = { ...threaded, "3": { class_type: "Other", inputs: {} } };
      const start = () => run(reds(3), { registry: undefined, setup: setup(), journal: journal() }, other);
      await refuses(start, "graph.unknown-class", /"Other"/);
      assert.ok(!existsSync(journal()));
    });

    it("calls a setup module once beside live objects, not for each item", async () => {
      const calls = "globalThis.latentkitTestCalls = (globalThis.latentkitTestCalls ?? 0) + 1;";
      const code = readFileSync(setup(), "utf8").replace("() => ({", `() => { ${calls} return ({`);
      writeFileSync(out("counts.mjs"), code.replace(/\}\);\s*$/, "}); };"));
      const more = { registry: undefined, setup: pathToFileURL(out("counts.mjs")), host: createPreviewHost() };
      assert.deepEqual(end(await run(reds(5), more, threaded)), ["success", 5, 0, 0]);
      assert.equal((globalThis as { latentkitTestCalls?: number }).latentkitTestCalls, 1);
    });

    it("fails only the item that ended its thread", async () => {
      const events: BatchEvent[] = [];
      const more = { outputDir: out("o"), setup: setup(), concurrency: 2, journal: out("o", "j.jsonl") };
      for await (const event of batch(threaded, reds(30), more)) events.push(event);
      assert.deepEqual(end(events), ["failed", 29, 0, 1]);
      const [failed] = only(events, "item-failed");
      assert.deepEqual([failed!.index, failed!.error.code], [13, "thread.lost"]);
      const warning = only(events, "warning").find(({ index }) => index === 13);
      assert.match(warning!.message, /^Node 1: the rendering thread ended .* Item 13 is retried alone\.$/);
      assert.equal(filesIn(out("o", "sub")).length, 29);
    });
  });
});
