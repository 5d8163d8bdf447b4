import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import {
  createRegistry,
  createRenderer,
  decodePng,
  defineNode,
  executeGraph,
  LatentkitError,
  type RenderOptions,
  registry,
  render,
  Tensor,
  text,
} from "latentkit";
import type { RunEvent } from "#src/graph/events.js";
import { rejectsAs } from "../../helpers/errors.js";
import { filesIn, root, temporaryFolder } from "../../helpers/folders.js";
import { skip } from "../../helpers/skip.js";

const graphPath = join(root, "test/graphs/save-image-lazy.json");
const inputDir = join(root, "test/graphs/input");
const lazy = (prefix = "a", extra: object = {}) => ({
  "1": { class_type: "LoadImage", inputs: { image: "lake.png" } },
  "2": { class_type: "ext saveImageLazy", inputs: { images: ["1", 0], filename_prefix: prefix, save_metadata: true } },
  ...extra,
});

describe("render", () => {
  const folder = temporaryFolder();
  const run = (graph: string | object, options: RenderOptions = {}) =>
    render(graph, { outputDir: folder(), inputDir, ...options });
  const chunks = async (file: string) => (await decodePng(readFileSync(join(folder(), file)))).text;
  const refused = async (graph: string | object, options: RenderOptions, code: string, pattern: RegExp) => {
    const before = filesIn(folder());
    await assert.rejects(run(graph, options), (error: unknown) => {
      assert.ok(error instanceof LatentkitError, String(error));
      assert.equal(error.code, code);
      assert.match(error.message, pattern);
      return true;
    });
    assert.deepEqual(filesIn(folder()), before);
  };

  it("takes a path, JSON text or an object, and tells what came of it", async () => {
    const fromPath = await run(graphPath, { inputDir: undefined });
    assert.deepEqual(fromPath.files, [
      {
        path: join(folder(), "save-image-lazy/64x64_0_00001.png"),
        filename: "64x64_0_00001.png",
        subfolder: "save-image-lazy",
        type: "output",
      },
    ]);
    assert.equal(fromPath.status, "success");
    assert.equal(fromPath.error, undefined);
    assert.deepEqual(Object.keys(fromPath.nodeMs).sort(), ["1", "2"]);
    assert.deepEqual(fromPath.ui["2"], {
      images: [{ filename: "64x64_0_00001.png", subfolder: "save-image-lazy", type: "output" }],
    });
    assert.ok(fromPath.outputs["2"]![0] instanceof Tensor);
    const graphText = `\ufeff \n${readFileSync(graphPath, "utf8")}`;
    assert.equal((await run(graphText)).files[0]!.filename, "64x64_0_00002.png");
    assert.equal((await run(lazy("b/c"))).files[0]!.path, join(folder(), "b/c_00001.png"));
  });

  it("lists texts and previews among the files, each under its real path", async () => {
    const graph = {
      "1": { class_type: "LoadImage", inputs: { image: "lake.png" } },
      "2": { class_type: "PreviewImage", inputs: { images: ["1", 0] } },
      "3": {
        class_type: "ext saveTextLazy",
        inputs: { text: "x", output_file_path: "t", file_name: "n", file_extension: "txt", overwrite: true },
      },
    };
    const { files } = await run(graph, { targets: ["2", "3"] });
    assert.deepEqual(files.map(({ type, subfolder }) => [type, subfolder]).sort(), [
      ["output", "t"],
      ["temp", ""],
    ]);
    for (const { path } of files) readFileSync(path);
  });

  it("puts values in before it validates, and never changes the graph it was given", async () => {
    const graph = lazy("{{name}}");
    const { files } = await run(graph, { set: { name: "filled", "2.save_metadata": "false" } });
    assert.equal(files[0]!.filename, "filled_00001.png");
    assert.deepEqual(await chunks("filled_00001.png"), {});
    assert.deepEqual(graph, lazy("{{name}}"));
    await refused(lazy(), { set: { "2.filename_perfix": "x" } }, "usage.invalid", /Did you mean 2\.filename_prefix\?/);
    await refused(lazy(), { set: { "2.save_metadata": "maybe" } }, "input.wrong-type", /Node 2 .*"save_metadata"/);
  });

  it("rejects what cannot run before anything is written, naming node and input", async () => {
    await refused(join(folder(), "none.json"), {}, "file.not-found", /none\.json does not exist/);
    await refused(folder(), {}, "graph.invalid", /expected a file, received a folder/);
    await refused("{ not json", {}, "graph.invalid-json", /line 1/);
    await refused([], {}, "graph.invalid", /object of nodes/);
    await refused(
      { nodes: [], links: [] },
      {},
      "graph.no-outputs",
      /^Graph: expected an output node \(such as SaveImage\) or a target, received neither\.$/,
    );
    await refused({ "1": { class_type: "ext saveImageLasy", inputs: {} } }, {}, "graph.unknown-class", /saveImageLasy/);
    await refused(lazy(), { targets: ["9"] }, "graph.unknown-target", /9/);
    await refused(lazy(), { metadata: "some" as "none" }, "usage.invalid", /full, prompt, none/);
    const cycle = { ...lazy(), "3": { class_type: "InvertMask", inputs: { mask: ["3", 0] } } };
    await refused(cycle, { targets: ["3"] }, "graph.cycle", /3 → 3/);
  });

  it("refuses a prefix that leaves the output folder before it runs", async () => {
    await refused(
      lazy("../out"),
      {},
      "input.invalid",
      /^Node 2 \(ext saveImageLazy\), input "filename_prefix": expected/,
    );
    assert.deepEqual(filesIn(folder()), []);
  });

  it("fails, and ends, if the system makes no folder", async function () {
    if (process.platform !== "linux") skip(this, "there is no /proc");
    // Node's own recursive mkdir never ends here
    const { status, error } = await run(lazy(), { outputDir: "/proc/latentkit/out" });
    assert.deepEqual([status, error?.code], ["failed", "file.write-failed"]);
  });

  it("resolves with what was written and the cause if a node fails", async () => {
    const failing = defineNode({
      key: "fails",
      inputs: { after: text() },
      outputs: {},
      outputNode: true,
      run: () => {
        throw new LatentkitError("file.write-failed", "The disk is full.");
      },
    });
    const graph = {
      "1": {
        class_type: "ext saveTextLazy",
        inputs: { text: "x", output_file_path: "t", file_name: "n", file_extension: "txt", overwrite: true },
      },
      "2": { class_type: "fails", inputs: { after: ["1", 0] } },
    };
    const result = await run(graph, { registry: createRegistry([failing], registry) });
    assert.deepEqual([result.status, result.error?.code], ["failed", "file.write-failed"]);
    assert.match(result.error!.message, /^Node 2 \(fails\).*The disk is full/);
    assert.deepEqual(
      result.files.map(({ filename }) => filename),
      ["n.txt"],
    );
  });

  it("rejects with the reason of an abort, before and in the middle", async () => {
    const aborted = AbortSignal.abort("no longer wanted");
    await rejectsAs(aborted, run(lazy(), { signal: aborted }));
    assert.deepEqual(filesIn(folder()), []);
    const controller = new AbortController();
    const waits = defineNode({
      key: "waits",
      inputs: {},
      outputs: {},
      outputNode: true,
      run: (_, { signal }) =>
        new Promise<undefined>((resolve) => {
          signal.addEventListener("abort", () => resolve(undefined));
          controller.abort();
        }),
    });
    const options = { registry: createRegistry([waits], registry), signal: controller.signal };
    await rejectsAs(controller.signal, run({ "1": { class_type: "waits", inputs: {} } }, options));
  });

  it("writes as much metadata as the policy says", async () => {
    const extraPnginfo = { workflow: { version: 0.4 }, note: "x" };
    await run(lazy("full"), { extraPnginfo });
    await run(lazy("prompt"), { extraPnginfo, metadata: "prompt" });
    await run(lazy("none"), { extraPnginfo, metadata: "none" });
    assert.deepEqual(Object.keys(await chunks("full_00001.png")), ["prompt", "workflow", "note", "latentkit"]);
    assert.deepEqual(Object.keys(await chunks("prompt_00001.png")), ["prompt", "latentkit"]);
    assert.deepEqual(await chunks("none_00001.png"), {});
  });

  it("runs classes under other names, and keeps those names in the metadata", async () => {
    const graph = lazy("old");
    graph["2"].class_type = "easy saveImageLazy";
    await run(graph, { classAliases: { "easy ": "ext " } });
    assert.match((await chunks("old_00001.png")).prompt!, /"class_type": "easy saveImageLazy"/);
    await run(graph, {
      classAliases: { "easy saveImageLazy": "ext saveImageLazy" },
      set: { "2.save_metadata": false },
    });
    assert.deepEqual(await chunks("old_00002.png"), {});
  });

  it("takes registry and host from a setup module", async () => {
    mkdirSync(folder(), { recursive: true });
    const module = join(folder(), "setup.mjs");
    const index = pathToFileURL(join(root, "dist/index.js")).href;
    writeFileSync(
      module,
      `import { createPreviewHost, createRegistry, defineNode, registry } from ${JSON.stringify(index)};
       const hello = defineNode({ key: "hello", inputs: {}, outputs: { text: "STRING" }, outputNode: true,
         run: (_, { host }) => ({ text: host.checkpoints().at(-1) }) });
       export default () => ({ registry: createRegistry([hello], registry),
         host: createPreviewHost({ checkpoints: { "mine.safetensors": "sdxl" } }) });`,
    );
    const { outputs } = await run({ "1": { class_type: "hello", inputs: {} } }, { setup: pathToFileURL(module) });
    assert.deepEqual(outputs, { "1": ["mine.safetensors"] });
    writeFileSync(join(folder(), "bad.mjs"), "export const nothing = 1;");
    const bad = pathToFileURL(join(folder(), "bad.mjs"));
    await assert.rejects(run(lazy(), { setup: bad }), /expected a function as its default export/);
  });

  it("reads graph and values when it is called, so that the caller may reuse them", async () => {
    const graph = { "1": { class_type: "PrimitiveInt", inputs: { value: 0 } } };
    const set: Record<string, number> = {};
    await using renderer = createRenderer({ threads: 1 });
    const options = { targets: ["1"], set };
    const renders = [1, 2, 3].flatMap((value) => {
      graph["1"].inputs.value = value;
      const own = [run(graph, { targets: ["1"] }), renderer.render({ graph, targets: ["1"] })];
      set["1.value"] = value;
      return [...own, run(graph, options), renderer.render({ graph, ...options })];
    });
    graph["1"].inputs.value = set["1.value"] = 9;
    const values = (await Promise.all(renders)).map(({ outputs }) => Number(outputs["1"]![0]));
    assert.deepEqual(values, [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
  });

  it("rejects with the error of a listener, whatever the event, and stops", async () => {
    const stream = async (onEvent: RenderOptions["onEvent"]) => {
      for await (const _ of executeGraph(lazy(), { outputDir: folder(), inputDir, onEvent }));
    };
    for (const type of ["run-start", "cached", "node-start", "node-done", "run-done"]) {
      const seen: string[] = [];
      const onEvent = (event: RunEvent) => {
        seen.push(event.type);
        if (event.type === type) throw new Error("the listener failed");
      };
      await assert.rejects(run(lazy(), { onEvent }), /^Error: the listener failed$/);
      assert.equal(seen.at(-1), type);
      await assert.rejects(stream(onEvent), /^Error: the listener failed$/);
    }
  });

  it("leaves a setup module that has not ended when the signal aborts", async () => {
    writeFileSync(join(folder(), "endless.mjs"), "export default () => new Promise(() => {});");
    const setup = pathToFileURL(join(folder(), "endless.mjs"));
    const abort = new AbortController();
    const rendering = run(lazy(), { setup, signal: abort.signal });
    setTimeout(() => abort.abort(new Error("enough")), 20);
    await assert.rejects(rendering, /^Error: enough$/);
  });

  it("tells each event on the way", async () => {
    const types: string[] = [];
    const onEvent = ({ type }: RunEvent) => void types.push(type);
    assert.equal((await run(lazy(), { onEvent })).status, "success");
    assert.deepEqual([types[0], types.at(-1)], ["run-start", "run-done"]);
    assert.equal(types.filter((type) => type === "node-done").length, 2);
  });
});
