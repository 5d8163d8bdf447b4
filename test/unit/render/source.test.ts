import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import {
  batch,
  convertWorkflow,
  createRenderer,
  decodePng,
  encodePng,
  executeGraph,
  graphSchema,
  parseGraphText,
  render,
  validateGraph,
} from "latentkit";
import { expectRender } from "latentkit/testing";
import { readGraph } from "#src/render/source.js";
import { verifyImage } from "#src/render/verify/verify.js";
import { refuses } from "../../helpers/errors.js";
import { root, temporaryFolder } from "../../helpers/folders.js";
import { ascii, exifBlock, exifSegment, jpegWith, webpWith } from "../../helpers/pictures/exif-files.js";
import { runHere as run } from "../../helpers/process/run-here.js";

const folder = temporaryFolder();
const pixel = { width: 1, height: 1, channels: 3, data: new Uint8Array(3) };
const API = {
  "1": { class_type: "EmptyImage", inputs: { width: 8, height: 8, batch_size: 1, color: 255 } },
  "2": { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "blue" } },
};
const EDITOR = {
  nodes: [
    { id: 1, type: "EmptyImage", widgets_values: [8, 8, 1, 255] },
    { id: 2, type: "SaveImage", inputs: [{ name: "images", type: "IMAGE", link: 1 }], widgets_values: ["blue"] },
  ],
  links: [[1, 1, 0, 2, 0, "IMAGE"]],
};
const prompt = JSON.stringify(API);
const workflow = JSON.stringify(EDITOR);

function file(name: string, bytes: string | Uint8Array): string {
  const path = join(folder(), name);
  writeFileSync(path, bytes);
  return path;
}

const inputsOf = (graph: unknown) =>
  Object.values(graph as typeof API).map(({ class_type, inputs }) => ({ class_type, inputs }));

describe("render/source", () => {
  it("reads a graph out of JSON files, pictures and bytes, in either format", async () => {
    const block = exifBlock([ascii(0x010f, `workflow:${workflow}`), ascii(0x0110, `prompt:${prompt}`)]);
    const carriers: Record<string, string | Uint8Array> = {
      "api.json": prompt,
      "editor.json": `\ufeff${workflow}`,
      "body.json": `{"input": {"workflow": ${workflow}}}`,
      "prompt.png": await encodePng(pixel, { text: { prompt, workflow: "{}" } }),
      "workflow.png": await encodePng(pixel, { text: { workflow } }),
      "picture.webp": webpWith(block),
      "picture.jpg": jpegWith(exifSegment(block)),
      "misnamed.json": webpWith(block),
    };
    for (const [name, bytes] of Object.entries(carriers)) {
      const { graph } = readGraph(file(name, bytes));
      assert.deepEqual(inputsOf(graph), inputsOf(API), name);
      const whole = typeof bytes === "string" ? Buffer.from(bytes) : bytes;
      assert.deepEqual(inputsOf(readGraph(whole).graph), inputsOf(API), name);
    }
    assert.deepEqual(inputsOf(readGraph(workflow).graph), inputsOf(API));
    assert.deepEqual(inputsOf(readGraph(EDITOR).graph), inputsOf(API));
    assert.equal(readGraph(API).graph, API);
  });

  it("reads texts of Python with NaN, and the workflow if the prompt is damaged", async () => {
    const nan = prompt.replace('"class_type":"SaveImage"', '"class_type":"SaveImage","is_changed":[NaN]');
    assert.notEqual(nan, prompt);
    const path = file("nan.png", await encodePng(pixel, { text: { prompt: nan } }));
    assert.equal((await render(path, { outputDir: folder() })).status, "success");
    for (const bad of ["{", "[]", '"x"']) {
      const bytes = await encodePng(pixel, { text: { prompt: bad, workflow } });
      assert.deepEqual(inputsOf(readGraph(bytes).graph), inputsOf(API));
    }
  });

  it("reads NaN in JSON files and texts as in pictures, and refuses it in inputs", async () => {
    const aside = prompt.replace('"class_type":"SaveImage"', '"class_type":"SaveImage","is_changed":[NaN, -Infinity]');
    const inside = prompt.replace('"color":255', '"color":NaN');
    const editor = workflow.replace("[8,8,1,255]", "[8,8,1,Infinity]");
    assert.ok(![prompt, workflow].some((text) => [aside, inside, editor].includes(text)));
    const options = { outputDir: folder() };
    for (const graph of [aside, file("aside.json", aside), Buffer.from(aside), parseGraphText(aside)]) {
      assert.equal((await render(graph, options)).status, "success");
    }
    assert.equal(validateGraph(aside).ok, true);
    await using renderer = createRenderer({ threads: 1, ...options });
    assert.equal((await renderer.render({ graph: aside })).status, "success");
    const finite = (received: string) =>
      new RegExp(`^Node 1, input "color": expected a finite number, received ${received}\\.$`);
    const picture = await encodePng(pixel, { text: { prompt: inside } });
    const object = structuredClone(API);
    object["1"].inputs.color = Number.NaN;
    for (const graph of [inside, file("inside.json", inside), Buffer.from(inside), picture, object]) {
      await refuses(() => render(graph, options), "graph.invalid", finite("NaN"));
      await refuses(() => batch(graph, [{}], options).next(), "graph.invalid", finite("NaN"));
      await refuses(() => renderer.render({ graph }), "graph.invalid", finite("NaN"));
    }
    for (const graph of [editor, Buffer.from(editor)])
      await refuses(() => render(graph, options), "graph.invalid", finite("Infinity"));
    await refuses(() => parseGraphText(inside), "graph.invalid", finite("NaN"));
    await refuses(() => convertWorkflow(editor), "graph.invalid", finite("Infinity"));
    const verdict = validateGraph(inside);
    assert.match(verdict.ok ? "" : verdict.error.sentence, finite("NaN"));
  });

  it("reads files in UTF-16, and refuses bytes that are not text", async () => {
    const marked = Buffer.from(`\ufeff${prompt}`, "utf16le");
    const texts = {
      little: marked,
      big: Buffer.from(marked).swap16(),
      unmarked: marked.subarray(2),
      editor: Buffer.from(`\ufeff${workflow}`, "utf16le"),
    };
    for (const [name, bytes] of Object.entries(texts)) {
      assert.deepEqual(inputsOf(readGraph(file(`${name}.json`, bytes)).graph), inputsOf(API), name);
      assert.deepEqual(inputsOf(readGraph(bytes).graph), inputsOf(API), name);
    }
    const latin = file("latin.json", Buffer.from(prompt.replace("blue", "grün"), "latin1"));
    const expected = /^Graph .*latin\.json: expected text in UTF-8 or UTF-16, received other bytes\.$/;
    await refuses(() => readGraph(latin), "graph.invalid-json", expected);
  });

  it("reads the file: URL of a graph, and names the folder beside it", async () => {
    const path = file("für dich 100%.json", prompt);
    mkdirSync(join(folder(), "input"), { recursive: true });
    const url = pathToFileURL(path);
    assert.match(url.href, /f%C3%BCr%20dich%20100%25\.json$/);
    assert.deepEqual(readGraph(url), { ...readGraph(path), inputDir: join(folder(), "input") });
    await refuses(
      () => readGraph(pathToFileURL(join(folder(), "none.json"))),
      "file.not-found",
      /none\.json does not exist/,
    );
    const other =
      /^Graph: expected a file: URL, received one that begins with https:; download the graph and pass its bytes\.$/;
    await refuses(() => readGraph(new URL("https://user:secret@example.com/a.json")), "graph.invalid", other);
    const elsewhere = /^Graph file:\/\/\/a%2Fb\.json: expected the URL of a file on this machine/;
    await refuses(() => readGraph(new URL("file:///a%2Fb.json")), "graph.invalid", elsewhere);
  });

  it("takes a URL and bytes at every door", async () => {
    const url = pathToFileURL(file("door.json", workflow));
    const bytes = Buffer.from(workflow);
    await using renderer = createRenderer({ threads: 1 });
    for (const graph of [url, bytes, new Uint8Array(bytes)]) {
      const options = { outputDir: join(folder(), "doors") };
      assert.equal((await render(graph, options)).status, "success");
      const [first, second] = [renderer.render({ graph, ...options }), renderer.render({ graph, ...options })];
      if (graph instanceof Uint8Array) graph.fill(0);
      assert.deepEqual([(await first).status, (await second).status], ["success", "success"]);
      if (graph instanceof Uint8Array) graph.set(Buffer.from(workflow));
      const events: string[] = [];
      for await (const { type } of batch(graph, [{ "1.color": 1 }], options)) events.push(type);
      assert.ok(events.includes("item-done"));
      assert.equal(validateGraph(graph).ok, true);
      const types: string[] = [];
      for await (const { type } of executeGraph(graph, options)) types.push(type);
      assert.equal(types.at(-1), "run-done");
      assert.ok("2.filename_prefix" in graphSchema(graph).properties);
      await expectRender(graph, { snapshot: join(folder(), "snapshot"), update: true });
    }
  });

  it("is an error as data if validation cannot read it", () => {
    const verdict = validateGraph(Buffer.from("{"));
    assert.equal(verdict.ok ? "" : verdict.error.code, "graph.invalid-json");
    const unknown = validateGraph({
      nodes: [
        { id: 1, type: "A", widgets_values: [3] },
        { id: 2, type: "PreviewImage", inputs: [{ name: "images", link: 1 }] },
      ],
      links: [[1, 1, 0, 2, 0, "IMAGE"]],
    });
    assert.deepEqual(unknown.ok ? [] : unknown.error.extra_info.unknown_classes, [
      { class_type: "A", count: 1, node_ids: ["1"], suggestion: undefined },
    ]);
  });

  it("refuses bytes whose memory was moved to another thread", async () => {
    const bytes = Uint8Array.from(Buffer.from(prompt));
    const moved = structuredClone(bytes, { transfer: [bytes.buffer] });
    assert.equal((await render(moved, { outputDir: folder() })).status, "success");
    await using renderer = createRenderer({ threads: 1 });
    for (const given of [bytes, bytes.buffer]) {
      await refuses(render(given), "graph.invalid", /memory was moved to another thread\.$/);
      await refuses(renderer.render({ graph: given }), "graph.invalid", /memory was moved to another thread\.$/);
    }
    assert.equal(validateGraph(bytes).ok, false);
  });

  it("says what was received instead of a graph", async () => {
    const lfs = "version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 3\n";
    const page = "<!DOCTYPE html><html></html>";
    const noPath = (text: string) =>
      `Graph: expected JSON text that begins with { or the path of a file, received ${text}.`;
    const address = (protocol: string) =>
      `Graph: expected a file: URL, received one that begins with ${protocol}; download the graph and pass its bytes.`;
    const nodes = (received: string) => `Graph: expected an object of nodes by id, received ${received}.`;
    const sentences: [source: string | object, message: string][] = [
      ["", noPath('""')],
      ["[]", noPath('"[]"')],
      ["null", noPath('"null"')],
      ["7.5", noPath('"7.5"')],
      ['"x"', noPath('"\\"x\\""')],
      [page, noPath(JSON.stringify(page))],
      ["x".repeat(5000), noPath(`"${"x".repeat(77)}..."`)],
      ["HTTPS://user:secret@example.com/x.json", address("https:")],
      [new URL("http://127.0.0.1:1/x.json"), address("http:")],
      [new Map(), nodes("a Map")],
      [Promise.resolve({}), nodes("a Promise")],
      [new Blob(["{}"]), nodes("a Blob")],
      [new Response("{}"), nodes("a Response")],
      [
        Buffer.from("{"),
        "Graph (bytes), line 1, column 2: expected a key in double quotes, received the end of the text.",
      ],
      [
        Buffer.from(page),
        "Graph (bytes): expected JSON or a picture, received a web page: the download may need a login or a token, or another address.",
      ],
      [
        Buffer.from(lfs),
        "Graph (bytes): expected JSON or a picture, received a Git LFS pointer: fetch the real file with git lfs pull.",
      ],
      [Buffer.from("\0\0\0\x18ftypisom"), "Graph (bytes): expected JSON or a picture, received a video."],
      [Buffer.from([0x1a, 0x45, 0xdf, 0xa3, 1]), "Graph (bytes): expected JSON or a picture, received a video."],
    ];
    const renderer = createRenderer({ threads: 1, outputDir: folder() });
    try {
      for (const [source, message] of sentences) {
        for (const rendering of [
          () => render(source, { outputDir: folder() }),
          () => renderer.render({ graph: source }),
        ])
          await assert.rejects(rendering, (error: Error) => {
            assert.equal(error.message, message);
            return true;
          });
      }
    } finally {
      await renderer.close();
    }
    assert.match((await run("render", "https://example.com/x.json")).err, /received one that begins with https:;/);
  });

  it("reads an address of a file as text, an ArrayBuffer, and names that begin like JSON", async () => {
    for (const name of ["[a] #?.json", "null", "7"]) {
      const path = file(name, prompt);
      const at = process.cwd();
      assert.deepEqual(inputsOf(readGraph(String(pathToFileURL(path))).graph), inputsOf(API));
      process.chdir(folder());
      try {
        assert.deepEqual(inputsOf(readGraph(name).graph), inputsOf(API));
      } finally {
        process.chdir(at);
      }
    }
    const buffer = new TextEncoder().encode(prompt).buffer;
    assert.deepEqual(inputsOf(readGraph(buffer).graph), inputsOf(API));
    assert.equal(validateGraph(buffer).ok, true);
  });

  it("refuses a folder", () =>
    refuses(() => readGraph(folder()), "graph.invalid", /: expected a file, received a folder\.$/));

  it("refuses a picture without a graph, and names its texts", async () => {
    const plain = file("plain.png", await encodePng(pixel, {}));
    const lined = file("lined.png", await encodePng(pixel, { text: { parameters: "a fox\nSteps: 20" } }));
    const start = 'expected a picture with a graph in its text "prompt" or "workflow", received one with';
    await refuses(() => readGraph(plain), "graph.invalid", new RegExp(`plain\\.png: ${start} no text\\.$`));
    const expected = new RegExp(`${start} "parameters"\\. Its parameters text is not a graph\\.$`);
    await refuses(() => readGraph(lined), "graph.invalid", expected);
    const spoilt = file("spoilt.png", await encodePng(pixel, { text: { prompt: "a fox", workflow: "{" } }));
    await refuses(
      () => readGraph(spoilt),
      "graph.invalid",
      /spoilt\.png: the picture's text "prompt" is not a graph\.$/,
    );
  });

  it("renders a picture again from itself, and writes the workflow that made it beside the graph", async () => {
    const first = await render(EDITOR, { outputDir: join(folder(), "first") });
    const { text } = await decodePng(readFileSync(first.files[0]!.path));
    assert.deepEqual(JSON.parse(text.workflow!), EDITOR);
    const second = await render(first.files[0]!.path, { outputDir: join(folder(), "second") });
    assert.deepEqual(readFileSync(second.files[0]!.path), readFileSync(first.files[0]!.path));
  });

  it("leaves the workflow out if a value was set or is redacted", async () => {
    for (const options of [{ set: { "1.color": 7 } }, { redact: ["1.color"] }]) {
      const { files } = await render(EDITOR, { outputDir: folder(), ...options });
      assert.deepEqual(Object.keys((await decodePng(readFileSync(files[0]!.path))).text), ["prompt", "latentkit"]);
    }
  });

  it("is what batches, validation, events and the command line read", async () => {
    const out = join(folder(), "batch");
    let done = 0;
    for await (const event of batch(EDITOR, [{ "1.color": 1 }, { "1.color": 2 }], { outputDir: out, concurrency: 1 })) {
      if (event.type === "item-done") done++;
    }
    assert.equal(done, 2);
    assert.equal(validateGraph(EDITOR).ok, true);
    const events: string[] = [];
    for await (const { type } of executeGraph(EDITOR, { outputDir: out })) events.push(type);
    assert.equal(events.at(-1), "run-done");
    const path = file("cli.json", workflow);
    const { code, out: printed } = await run("validate", path);
    assert.equal(code, 0);
    assert.match(printed, /cli\.json can run and computes node 2\./);
  });

  it("converts on the command line, to a file or to the terminal", async () => {
    const path = file("convert.json", workflow);
    const target = join(folder(), "graph.json");
    const first = await run("convert", path);
    assert.deepEqual([first.code, inputsOf(JSON.parse(first.out))], [0, inputsOf(API)]);
    const second = await run("convert", path, target);
    assert.deepEqual([second.code, readFileSync(target, "utf8")], [0, first.out]);
    mkdirSync(join(folder(), "taken"));
    const third = await run("convert", path, join(folder(), "taken"));
    assert.match(third.err, /a folder has that name/);
    assert.equal(third.code, 1);
  });

  it("leaves out a node of unknown class whose widgets have no names, if the targets do not need it", async () => {
    const inputs = [{ name: "image", type: "IMAGE", link: 2 }];
    const shown = {
      nodes: [...EDITOR.nodes, { id: 3, type: "Show It", inputs, widgets_values: [3, "fast"] }],
      links: [...EDITOR.links, [2, 1, 0, 3, 0, "IMAGE"]],
    };
    const note = "Graph: node 3 (Show It) is left out: its class is unknown, and no target needs it.";
    await refuses(
      render(shown, { outputDir: folder() }),
      "graph.unknown-class",
      /name targets that do not need them\.$/,
    );
    await refuses(render(shown, { targets: ["3"], outputDir: folder() }), "graph.unknown-class", /"Show It"/);
    const options = { targets: ["2"], outputDir: folder() };
    assert.equal(validateGraph(shown, { targets: ["2"] }).ok, true);
    const { files, warnings } = await render(shown, options);
    assert.deepEqual(warnings, [note]);
    const bytes = readFileSync(files[0]!.path);
    const { text } = await decodePng(bytes);
    assert.deepEqual([Object.keys(JSON.parse(text.prompt!)), JSON.parse(text.workflow!)], [["1", "2"], shown]);
    assert.equal((await verifyImage(bytes)).status, "verified");
    const notes: string[] = [];
    let done = 0;
    for await (const event of batch(shown, [{ "1.color": 1 }, { "1.color": 2 }], options)) {
      if (event.type === "item-done") done++;
      if (event.type === "warning") notes.push(event.message);
    }
    assert.deepEqual([done, notes], [2, [note]]);
  });

  it("validates the editor's files that have only nodes of ours", async () => {
    const names = ["text-to-image", "reroutes", "group-node", "nested-subgraphs", "subgraph-instances"];
    for (const name of names) {
      const text = readFileSync(join(root, `test/graphs/workflows/${name}.json`), "utf8");
      const verdict = validateGraph(JSON.parse(text.replaceAll("dreamer-v8", "preview-sd15")));
      assert.deepEqual([name, verdict.ok], [name, true]);
    }
  });
});
