import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createPreviewHost, createRegistry, decodePng, defineNode, registry } from "latentkit";
import { createGraphAgent, createHookService, createMemoryStore, type GraphAgentOptions } from "latentkit/hooks";
import { createLogger } from "latentkit/service";
import { refuses } from "../../../helpers/errors.js";
import { filesIn, root, temporaryFolder } from "../../../helpers/folders.js";
import { tinyModels } from "../../../helpers/models/tiny-host.js";

const inputDir = join(root, "test/graphs/input");
const library = JSON.stringify(pathToFileURL(join(root, "dist/index.js")).href);
const save = (images: unknown[], filename_prefix: string) => ({
  class_type: "ext saveImageLazy",
  inputs: { images, filename_prefix, save_metadata: true },
});
const lake = { class_type: "LoadImage", inputs: { image: "lake.png" } };

describe("createGraphAgent", () => {
  const folder = temporaryFolder();
  const closers: (() => Promise<void>)[] = [];
  const out = () => join(folder(), "out");
  const open = (graph: string | object, options: Partial<GraphAgentOptions> = {}) => {
    const agent = createGraphAgent({ graph, outputDir: out(), inputDir, threads: 1, ...options });
    closers.push(() => agent.close());
    return agent;
  };
  afterEach(async () => {
    for (const close of closers.splice(0)) await close();
  });

  /** Runs a message through the real service; the run's events come back parsed. */
  const serve = (graph: string | object, options: Partial<GraphAgentOptions> = {}) => {
    const agent = open(graph, options);
    const service = createHookService({
      agent,
      store: createMemoryStore(),
      logger: createLogger({ level: "silent" }),
      config: { limits: { running_per_session: 4 } },
    });
    closers.push(() => service.close(0));
    const start = async (message: string) => {
      const { runId } = await service.runs.start({ origin: "agent", message, sessionKey: "s" });
      return runId;
    };
    const read = async (id: string) => {
      const events: { event: string; data: Record<string, unknown> }[] = [];
      for await (const slice of service.runs.follow(id, 0)) {
        for (const { event, data } of slice.events) events.push({ event, data: JSON.parse(data) });
      }
      const { state } = await service.runs.get(id);
      return { id, state, events, last: events.at(-1)!.data };
    };
    return { ...service, start, read, run: async (message: string) => read(await start(message)) };
  };

  it("warns of nodes of an editor's file that are not in the graph", async () => {
    const nodes = [
      { id: 1, type: "LoadImage", inputs: [], widgets_values: ["lake.png", "image"] },
      { id: 2, type: "SaveImage", inputs: [{ name: "images", type: "IMAGE", link: 1 }], widgets_values: ["a"] },
      { id: 3, type: "Some Label", widgets_values: ["x"] },
    ];
    const { state, events } = await serve({ nodes, links: [[1, 1, 0, 2, 0, "IMAGE"]] }).run("{}");
    const message = "Workflow: node 3 (Some Label) is left out: its class is unknown, and nothing is linked to it.";
    assert.deepEqual(
      [state, events.filter(({ event }) => event === "warning").map(({ data }) => data)],
      ["succeeded", [{ node: null, message }]],
    );
  });

  it("warns of waiting events that a JSON message has no place for", async () => {
    const { runs, read } = serve({ "1": lake, "2": save(["1", 0], "{{name}}") });
    for (const text of ["one", "two"]) await runs.queueWake({ sessionKey: "s", text });
    const { runId } = await runs.start({ origin: "agent", message: '{"name": "a"}', sessionKey: "s" });
    const { state, events } = await read(runId);
    assert.deepEqual(
      [state, events.filter(({ event }) => event === "warning").map(({ data }) => data.message)],
      ["succeeded", ["2 pending events before the message were dropped: a JSON message only sets values."]],
    );
  });

  it("writes in another folder when a run starts again: its lost worker may still write", async () => {
    const agent = open({ "1": lake, "2": save(["1", 0], "{{message}}") });
    const run = { id: "again", sessionKey: "s", message: "fox", name: null };
    const context = {
      signal: new AbortController().signal,
      emit: () => undefined,
      addFile: ({ path }: { path: string }) => ({ name: path, url: path }),
    };
    await agent(run, context);
    await agent({ ...run, attempt: 2 }, context);
    assert.deepEqual(filesIn(out()).sort(), ["runs/again.2/fox_00001.png", "runs/again/fox_00001.png"]);
  });

  it("renders a message, emits its events, responds with the files", async () => {
    const { run, runs } = serve({ "1": lake, "2": save(["1", 0], "{{message}}") });
    const { id, state, events, last } = await run("fox");
    assert.equal(state, "succeeded");
    const file = {
      node: "2",
      filename: "fox_00001.png",
      subfolder: `runs/${id}`,
      type: "output",
      url: `/api/runs/${id}/files/fox_00001.png`,
    };
    const told = events.map(({ event, data }) => [event, event === "node_done" ? { ...data, ms: 0 } : data]);
    assert.deepEqual(told, [
      ["status", { message: "The run has started.", state: "running" }],
      ["node_start", { node: "1", class_type: "LoadImage" }],
      ["node_done", { node: "1", class_type: "LoadImage", ms: 0, done: 1, nodes: 2 }],
      ["node_start", { node: "2", class_type: "ext saveImageLazy" }],
      ["node_done", { node: "2", class_type: "ext saveImageLazy", ms: 0, done: 2, nodes: 2 }],
      ["image", file],
      ["done", { response: JSON.stringify([file]) }],
    ]);
    assert.deepEqual(JSON.parse(String(last.response)), [file]);
    const stored = await runs.file(id, "fox_00001.png");
    assert.equal(stored.path, join(out(), file.subfolder, file.filename));
    const { text } = await decodePng(readFileSync(stored.path));
    assert.match(text.prompt!, /"filename_prefix": "fox"/);
    assert.match(text.latentkit!, /"node": "2", "index": 0, /);
  });

  it("counts cached nodes as done, also in the status", async () => {
    const { run, runs } = serve({ "1": lake, "2": save(["1", 0], "{{message}}") }, { threads: 1 });
    await run("fox");
    const { id, events } = await run("owl");
    const counts = events
      .filter(({ event }) => event === "node_done")
      .map(({ data }) => [data.node, data.done, data.nodes]);
    assert.deepEqual(counts, [["2", 2, 2]]);
    assert.deepEqual((await runs.status(id)).progress, { value: 2, max: 2, node: null });
  });

  it("caches no result that depends on a message, and every other one", async () => {
    const choice = { class_type: "ext if", inputs: { any: "{{message}}", if: ["1", 0], else: ["1", 0] } };
    const { run } = serve({ "1": lake, "2": choice, "3": save(["2", 0], "p") }, { threads: 1 });
    await run("fox");
    const { events } = await run("fox");
    const started = events.filter(({ event }) => event === "node_start").map(({ data }) => data.node);
    assert.deepEqual(started, ["2", "3"]);
  });

  it("redacts values in the files, also on the calling thread", async () => {
    const graph = { "1": lake, "2": save(["1", 0], "{{message}}") };
    for (const options of [{}, { host: createPreviewHost() }]) {
      const { run } = serve(graph, { ...options, redact: ["2.filename_prefix"] });
      const { id, state } = await run("fox");
      assert.equal(state, "succeeded");
      const { text } = await decodePng(readFileSync(join(out(), "runs", id, "fox_00001.png")));
      assert.match(text.prompt!, /"filename_prefix": "\[redacted\]"/);
      assert.match(text.latentkit!, /"redacted": \["2\.filename_prefix"\]/);
    }
  });

  it("fills placeholders from a JSON message with every digit", async () => {
    const graph = {
      "1": { class_type: "EmptyLatentImage", inputs: { width: "{{width}}", height: 64, batch_size: 1 } },
      "2": {
        class_type: "ext saveTextLazy",
        inputs: {
          text: "{{seed}} {{scale}}",
          output_file_path: "t",
          file_name: "n",
          file_extension: "txt",
          overwrite: true,
        },
      },
    };
    const { run } = serve(graph, { metadata: "none" });
    const { id, state } = await run('{"width": 128, "seed": 18446744073709551615, "scale": 7.0}');
    assert.equal(state, "succeeded");
    assert.equal(readFileSync(join(out(), "runs", id, "t/n.txt"), "utf8").trim(), "18446744073709551615 7.0");
    const { state: failed, last } = await run('{"width": 128, "seed": 1}');
    assert.equal(failed, "failed");
    assert.deepEqual([last.code, /\{\{scale\}\}/.test(String(last.error))], ["usage.invalid", true]);
    assert.equal((await run('{"width": ["2", 0], "seed": 1, "scale": 1}')).last.code, "usage.invalid");
  });

  it("checks a message against the graph's schema before the run, and in it", async () => {
    const noise = { class_type: "SolidMask", inputs: { value: "{{value}}", width: 8, height: ["3", 0] } };
    const height = { class_type: "PrimitiveInt", inputs: { value: 4 }, _meta: { title: "Height" } };
    const image = { class_type: "MaskToImage", inputs: { mask: ["1", 0] } };
    const graph = { "1": noise, "2": save(["4", 0], "x"), "3": height, "4": image };
    const sentence = 'Message, property "value": expected a number from 0 to 1, received 7.';
    const agent = open(graph);
    await refuses(() => agent.check('{"value": 7}'), "usage.invalid");
    agent.check('{"value": 0.5, "Height": 16}');
    await refuses(
      () => agent.check('{"value": 0.5, "4.mask": 1}'),
      "usage.invalid",
      /no key "4.mask"; it takes "value", "Height"\.$/,
    );
    const { run } = serve(graph);
    const failed = await run('{"value": 7}');
    assert.deepEqual([failed.state, failed.last.error], ["failed", sentence]);
    const { last } = await run('{"value": 0.5, "Height": 16}');
    const [file] = JSON.parse(String(last.response)) as { filename: string; subfolder: string }[];
    const picture = await decodePng(readFileSync(join(out(), file!.subfolder, file!.filename)));
    assert.deepEqual([picture.width, picture.height, picture.data[0]], [8, 16, 127]);
    // nodes of a setup module may take other values than the package's
    const setup = pathToFileURL(join(root, "dist/index.js"));
    open(graph, { setup }).check('{"value": 7}');
    open(graph, { partial: true }).check('{"value": 7}');
    await refuses(() => open(graph, { partial: true }).check('{"value": [7]}'), "usage.invalid", /text, number/);
  });

  it("emits texts as file, previews as image, with distinct names", async () => {
    const graph = {
      "1": lake,
      "2": { ...save(["1", 0], ""), inputs: { ...save(["1", 0], "").inputs, filename_prefix: ["5", 0] } },
      "3": save(["1", 0], "b/fox"),
      "4": { class_type: "PreviewImage", inputs: { images: ["1", 0] } },
      "5": {
        class_type: "ext saveTextLazy",
        inputs: {
          text: "{{message}}",
          output_file_path: ".",
          file_name: "fox",
          file_extension: "txt",
          overwrite: true,
        },
      },
      "6": { class_type: "PreviewImage", inputs: { images: ["2", 0] } },
      "7": { class_type: "PreviewImage", inputs: { images: ["3", 0] } },
    };
    const { run, runs } = serve(graph);
    const { id, last, events } = await run("a/fox");
    const files = JSON.parse(String(last.response)) as Record<string, string>[];
    const names = files.map(({ url }) => decodeURIComponent(url!.split("/").at(-1)!)).sort();
    assert.deepEqual(names, [
      "fox.txt",
      "fox_00001-2.png",
      "fox_00001.png",
      "preview_00001_.png",
      "preview_00002_.png",
      "preview_00003_.png",
    ]);
    for (const { url, subfolder, filename } of files) {
      const { path } = await runs.file(id, decodeURIComponent(url!.split("/").at(-1)!));
      assert.equal(path, join(out(), subfolder!, filename!));
      readFileSync(path);
    }
    assert.equal(files.length, filesIn(out()).length);
    assert.deepEqual(
      events.filter(({ event }) => event === "file").map(({ data }) => data.filename),
      ["fox.txt"],
    );
    assert.equal(events.filter(({ event }) => event === "image").length, 5);
    assert.ok(files.some(({ type, subfolder }) => type === "temp" && subfolder === `runs/${id}/temp`));
  });

  it("emits previews if asked, a second apart, from threads and without them", async () => {
    const ofSize = (sides: object) => ({
      ...JSON.parse(readFileSync(join(root, "examples/text-to-image.json"), "utf8")),
      4: { class_type: "EmptyLatentImage", inputs: { ...sides, batch_size: 2 } },
    });
    const large = ofSize({ width: 1024, height: 256 });
    for (const live of [{}, { host: createPreviewHost(), registry }]) {
      const begun = performance.now();
      const { events } = await serve(large, { ...live, previews: true }).run("{}");
      const seconds = (performance.now() - begun) / 1000;
      const previews = events.filter(({ event }) => event === "preview");
      assert.ok(previews.length >= 1 && previews.length <= 1 + seconds, `${previews.length} in ${seconds} s`);
      const { node, value, max, url } = previews[0]!.data;
      assert.deepEqual([node, value, max], ["5", 1, 20]);
      const [head, base64] = String(url).split(",");
      assert.equal(head, "data:image/png;base64");
      const { width, height } = await decodePng(Buffer.from(base64!, "base64"));
      assert.deepEqual([width, height], [128, 32]);
    }
    const { events } = await serve(ofSize({ width: 64, height: 64 })).run("{}");
    assert.ok(!events.some(({ event }) => event === "preview"));
  });

  it("writes each run's files to its own folder, also of concurrent runs", async () => {
    const { start, read } = serve({ "1": lake, "2": save(["1", 0], "same") }, { threads: 2 });
    const ids = await Promise.all(["{}", "{}", "{}", "{}"].map(start));
    const ended = await Promise.all(ids.map(read));
    for (const { id, last } of ended) {
      const files = JSON.parse(String(last.response)) as { subfolder: string }[];
      assert.deepEqual(
        files.map(({ subfolder }) => subfolder),
        [`runs/${id}`],
      );
    }
    assert.deepEqual(filesIn(out()), ids.map((id) => `runs/${id}/same_00001.png`).sort());
  });

  it("failed run: has the node's message", async () => {
    const load = { class_type: "LoadImage", inputs: { image: ["3", 0] } };
    const name = { class_type: "ext if", inputs: { any: 1, if: "{{message}}", else: "" } };
    const { run } = serve({ "1": load, "2": save(["1", 0], "lake"), "3": name });
    const { state, last, events } = await run("nowhere.png");
    assert.equal(state, "failed");
    assert.equal(last.code, "file.not-found");
    assert.match(String(last.error), /Node 1 \(LoadImage\), input "image".*nowhere/);
    assert.deepEqual(
      events.filter(({ event }) => event === "node_error").map(({ data }) => [data.node, data.code]),
      [["1", "file.not-found"]],
    );
    assert.equal((await run("lake.png")).state, "succeeded");
  });

  it("missing input file: the run fails before a node runs", async () => {
    const load = { class_type: "LoadImage", inputs: { image: "{{message}}" } };
    const { run } = serve({ "1": load, "2": save(["1", 0], "lake") });
    const { state, last, events } = await run("nowhere.png");
    assert.deepEqual([state, last.code], ["failed", "file.not-found"]);
    assert.match(String(last.error), /Node 1 \(LoadImage\), input "image".*nowhere/);
    assert.ok(!events.some(({ event }) => event === "node_start"));
  });

  it("message with a path outside the output folder: fails before a node runs", async () => {
    const { run } = serve({ "1": lake, "2": save(["1", 0], "{{message}}") });
    const { state, last, events } = await run("../../leaves");
    assert.equal(state, "failed");
    assert.equal(last.code, "input.invalid");
    assert.match(String(last.error), /Node 2 \(ext saveImageLazy\), input "filename_prefix".*leaves/);
    assert.ok(!events.some(({ event }) => event === "node_start"));
    assert.equal(existsSync(join(folder(), "leaves_00001.png")), false);
    assert.equal((await run("stays")).state, "succeeded");
  });

  it("cancelled run: stops its thread, leaves no temporary file, frees its slot @long", async () => {
    mkdirSync(folder(), { recursive: true });
    const setup = join(folder(), "setup.mjs");
    writeFileSync(
      setup,
      `import { createRegistry, defineNode, registry, text } from ${library};
       import { mkdirSync, writeFileSync } from "node:fs";
       const stuck = defineNode({ key: "stuck", inputs: { word: text() }, outputs: {}, outputNode: true,
         run: ({ word }, { folders, progress }) => {
           progress(1, 2);
           if (word === "exit") process.exit(1);
           if (word !== "stuck") return {};
           mkdirSync(folders.output, { recursive: true });
           writeFileSync(folders.output + "/.latentkit-0.tmp", "half");
           writeFileSync(folders.output + "/kept.tmp", "a node's own");
           for (;;);
         } });
       export default () => ({ registry: createRegistry([stuck], registry) });`,
    );
    const graph = { "1": { class_type: "stuck", inputs: { word: "{{message}}" } } };
    const { run, start, read, runs } = serve(graph, { setup: pathToFileURL(setup), graceMs: 50 });
    const id = await start("stuck");
    for await (const { events } of runs.follow(id, 0)) if (events.some(({ event }) => event === "progress")) break;
    await runs.cancel(id);
    const { state, events } = await read(id);
    assert.equal(state, "cancelled");
    assert.deepEqual(events.at(-1), { event: "aborted", data: { text: null } });
    assert.ok(
      events.some(({ event, data }) => event === "progress" && data.value === 1 && data.max === 2 && data.node === "1"),
    );
    const lost = await run("exit");
    assert.deepEqual([lost.state, lost.last.code], ["failed", "thread.lost"]);
    assert.equal((await run("go on")).state, "succeeded");
    assert.deepEqual(filesIn(out()), [`runs/${id}/kept.tmp`]);
  });

  it("reports no file outside the run's folder", async () => {
    const strays = defineNode({
      key: "strays",
      inputs: {},
      outputs: {},
      outputNode: true,
      run: () => ({
        ui: { files: [{ filename: "passwd", subfolder: "../../../../etc" }, { filename: "/etc/passwd" }] },
      }),
    });
    const graph = { "1": { class_type: "strays", inputs: {} } };
    const { last } = await serve(graph, { registry: createRegistry([strays], registry) }).run("{}");
    const files = JSON.parse(String(last.response)) as { url: string; subfolder: string }[];
    assert.deepEqual(
      files.map(({ subfolder }) => /^runs\/[-\w]+\/etc$/.test(subfolder)),
      [true],
    );
  });

  it("renders with live objects on the calling thread", async () => {
    let host = "";
    const names = defineNode({
      key: "names the host",
      inputs: {},
      outputs: {},
      outputNode: true,
      run: (_, context) => {
        host = context.host.name;
        context.log("mind the gap");
        return {};
      },
    });
    const live = { registry: createRegistry([names], registry), host: { ...createPreviewHost(), name: "mine" } };
    const { run } = serve({ "1": { class_type: "names the host", inputs: {} } }, live);
    const { state, events } = await run("{}");
    assert.deepEqual([state, host], ["succeeded", "mine"]);
    assert.ok(
      events.some(({ event, data }) => event === "warning" && data.message === "Node 1 (names the host): mind the gap"),
    );
    await refuses(() => open({ "1": lake }, { ...live, setup: pathToFileURL("/x.mjs") }), "usage.invalid", /setup/);
  });

  it("computes its targets alone, and puts extraPnginfo into their files", async () => {
    const graph = { "1": lake, "2": save(["1", 0], "two"), "3": save(["1", 0], "three") };
    for (const live of [{}, { host: createPreviewHost() }]) {
      const { run } = serve(graph, { ...live, targets: ["3"], extraPnginfo: { note: { by: "us" } } });
      const { id, last } = await run("{}");
      const files = JSON.parse(String(last.response)) as { filename: string }[];
      assert.deepEqual(
        files.map(({ filename }) => filename),
        ["three_00001.png"],
      );
      const { text } = await decodePng(readFileSync(join(out(), "runs", id, "three_00001.png")));
      assert.equal(text.note, '{"by": "us"}');
    }
    await refuses(() => open(graph, { targets: ["4"] }), "graph.unknown-target", /received "4"/);
    await refuses(() => open(graph, { extraPnginfo: { prompt: 1 } }), "usage.invalid", /prompt/);
    const config = { keys: [() => "secret"] } as GraphAgentOptions["config"];
    await refuses(() => open(graph, { config }), "usage.invalid", /^config, keys: .* received a function/);
  });

  it("takes a message that looks like a prompt's facts for a message", async () => {
    const { runs, read } = serve({ 1: lake, 2: save(["1", 0], "p") });
    const text = JSON.stringify({ 1: lake, 2: save(["1", 0], "one"), 3: save(["1", 0], "two") });
    const facts = { clientId: "me", isFront: false, targets: ["2"], outputs: ["2"], extraPnginfo: { workflow: {} } };
    const message = JSON.stringify(facts).replaceAll(":", ": ");
    const start = async (own: object) => {
      const { runId } = await runs.start({ origin: "agent", message, graph: { name: null, text }, ...own });
      const { events } = await read(runId);
      const files = events.filter(({ event }) => event === "image").map(({ data }) => data.node);
      return { files, told: events.some(({ event }) => event === "node_output") };
    };
    assert.deepEqual(await start({}), { files: ["2", "3"], told: false });
    assert.deepEqual(await start({ promptFacts: message }), { files: ["2"], told: true });
  });

  it("finds slow results of another agent in its disk cache", async () => {
    mkdirSync(folder(), { recursive: true });
    const setup = join(folder(), "slow.mjs");
    writeFileSync(
      setup,
      `import { createRegistry, defineNode, int, registry } from ${library};
       const slow = defineNode({ key: "slow", cacheVersion: "1", inputs: { n: int() }, outputs: { n: "INT" },
         run: async ({ n }) => { await new Promise((resolve) => setTimeout(resolve, 20)); return { n }; } });
       export const nodes = createRegistry([slow], registry);
       export default () => ({ registry: nodes });`,
    );
    const graph = {
      "1": { class_type: "slow", inputs: { n: 4 } },
      "2": { class_type: "ext showAnythingLazy", inputs: { anything: ["1", 0] } },
    };
    const { nodes } = (await import(pathToFileURL(setup).href)) as { nodes: GraphAgentOptions["registry"] };
    const cacheDir = join(folder(), "cache");
    const started: unknown[][] = [];
    for (const options of [{ setup: pathToFileURL(setup) }, { setup: pathToFileURL(setup) }, { registry: nodes }]) {
      const { events } = await serve(graph, { ...options, cacheDir }).run("{}");
      started.push(events.filter(({ event }) => event === "node_start").map(({ data }) => data.node));
    }
    assert.deepEqual(started, [["1", "2"], ["2"], ["2"]]);
  });

  it("runs old class names through classAliases", async () => {
    const graph = { "1": lake, "2": { ...save(["1", 0], "x"), class_type: "easy saveImageLazy" } };
    const { state, events } = await serve(graph, { classAliases: { "easy ": "ext " } }).run("{}");
    assert.equal(state, "succeeded");
    assert.ok(events.some(({ data }) => data.class_type === "easy saveImageLazy"));
  });

  it("checks graphs by the model files that its threads load, and leaves prompts to the run", async () => {
    const models = { folders: [tinyModels(), folder()] };
    mkdirSync(join(folder(), "embeddings"));
    writeFileSync(join(folder(), "embeddings", "pickled.pt"), "no tensors");
    const checkpoint = (ckpt_name: string) => ({
      1: { class_type: "CheckpointLoaderSimple", inputs: { ckpt_name } },
      2: { class_type: "CLIPTextEncode", inputs: { text: "embedding:pickled", clip: ["1", 1] } },
      3: { class_type: "EmptyLatentImage", inputs: { width: 64, height: 64, batch_size: 1 } },
      4: {
        class_type: "KSampler",
        inputs: {
          seed: 1,
          steps: 1,
          cfg: 1,
          sampler_name: "euler",
          scheduler: "normal",
          denoise: 1,
          model: ["1", 0],
          positive: ["2", 0],
          negative: ["2", 0],
          latent_image: ["3", 0],
        },
      },
      5: { class_type: "VAEDecode", inputs: { samples: ["4", 0], vae: ["1", 2] } },
      6: { class_type: "SaveImage", inputs: { images: ["5", 0], filename_prefix: "x" } },
    });
    const graph = checkpoint("tiny-sd1.safetensors");
    const agent = open(graph, { models });
    assert.ok(agent.graphs.models("checkpoints")?.includes("tiny-sd1.safetensors"));
    assert.equal((await agent.graphs.validate(graph)).ok, true);
    const { state, last } = await serve(graph, { models }).run("{}");
    assert.equal(state, "failed");
    assert.match(String(last.error), /pickled\.pt/);
    const other = { ...graph, 1: checkpoint("tiny-sd11.safetensors")[1] };
    const { ok, nodeErrors } = await agent.graphs.validate(other);
    assert.equal(ok, false);
    assert.match(JSON.stringify(nodeErrors), /tiny-sd1\.safetensors/);
    const live = { host: createPreviewHost() };
    await refuses(() => open(graph, { models, ...live }), "usage.invalid", /expected models, or host and registry/);
    await refuses(() => open(graph, { models: { folders: join(folder(), "none") } }), "config.invalid");
  });

  it("throws for a graph that cannot run", async () => {
    await refuses(() => open(join(folder(), "none.json")), "file.not-found", /none\.json/);
    await refuses(() => open("{ not json"), "graph.invalid-json", /line 1/);
    await refuses(() => open({ "1": { class_type: "LoadImige", inputs: {} } }), "graph.unknown-class", /LoadImage/);
  });
});
