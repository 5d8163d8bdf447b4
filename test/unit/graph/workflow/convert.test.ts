import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { batch, convertWorkflow, createRenderer, executeGraph, registry, render, validateGraph } from "latentkit";
import { coreWidgets } from "#src/graph/workflow/widgets.js";
import { parseJson } from "#src/io/json/lossless.js";
import { refuses } from "../../../helpers/errors.js";
import { root, temporaryFolder } from "../../../helpers/folders.js";

const folder = join(root, "test/graphs/workflows");
const names = readdirSync(folder).flatMap((name) => (name.endsWith(".api.json") ? [name.slice(0, -9)] : []));
const clock = () => new Date(2026, 2, 7, 8, 5, 2);

type Links = readonly (readonly unknown[])[];

const node = (id: number, type: string, rest: object = {}) => ({ id, type, ...rest });
const open = (name: string, link: number | null = null, type = "*") => ({ name, type, link });
const convert = (nodes: object[], links: Links = [], rest: object = {}) =>
  convertWorkflow({ nodes, links, ...rest }) as Record<string, { inputs: Record<string, unknown> }>;
const preview = node(9, "PreviewImage", { inputs: [open("images", 1, "IMAGE")] });

describe("graph/workflow/convert", () => {
  const outputDir = temporaryFolder();

  it("has ten pairs", () => assert.equal(names.length, 10));

  for (const name of names) {
    it(`${name}: the graph that the editor queues`, () => {
      const read = (file: string) => readFileSync(join(folder, file), "utf8");
      const converted = convertWorkflow(read(`${name}.json`), { clock });
      assert.deepEqual(converted, parseJson(read(`${name}.api.json`)));
    });
  }

  it("gives new ids to nodes whose id another has, as the editor does: links mean the first", () => {
    const image = (id: number, color: number) => node(id, "EmptyImage", { widgets_values: [8, 8, 1, color] });
    const save = node(9, "SaveImage", { inputs: [open("images", 1, "IMAGE")], widgets_values: ["a"] });
    const nodes = [image(5, 1), image(5, 2), save, image(10, 3)];
    const graph = convertWorkflow({ nodes, links: [[1, 5, 0, 9, 0, "IMAGE"]] }) as Record<string, { inputs: object }>;
    const colors = Object.entries(graph).map(([id, { inputs }]) => [id, (inputs as { color?: number }).color]);
    assert.deepEqual(Object.fromEntries(colors), { 5: 1, 9: undefined, 10: 3, 11: 2 });
    assert.deepEqual(graph["9"]!.inputs, { filename_prefix: "a", images: ["5", 0] });
  });

  it("refuses a file that leaves widgets unnamed, and lists all unknown classes", async () => {
    const linked = { inputs: [open("images", 1)], widgets_values: [3, "fast"] };
    const widget = { name: "strength", type: "FLOAT", link: null, widget: { name: "strength" } };
    const grain = node(8, "Film Grain", { inputs: [open("image", 1), widget], widgets_values: [0.3] });
    const inside = { id: "S", inputs: [], nodes: [node(2, "Far Away", linked)], links: [[1, 2, 0, 2, 0, "IMAGE"]] };
    const links = [
      [1, 5, 0, 4, 0, "IMAGE"],
      [2, 8, 0, 9, 0, "IMAGE"],
    ];
    const hint =
      "define these classes, save the workflow again in an editor that has them, export it in API format, or name targets that do not need them.";
    const one = { nodes: [node(4, "Far Away", linked), node(5, "EmptyImage")], links };
    const { details } = await refuses(
      () => convertWorkflow(one),
      "graph.unknown-class",
      new RegExp(
        `^Workflow: Node 4: expected a known class_type, received "Far Away"\\. The file does not name the widgets of node 4: ${hint}$`,
      ),
    );
    assert.equal(details.nodeId, "4");
    const nodes = [...one.nodes, node(6, "S", { title: "Inside" }), grain, preview];
    const all = await refuses(
      () => convertWorkflow({ nodes, links, definitions: { subgraphs: [inside] } }),
      "graph.unknown-class",
      new RegExp(
        `^Workflow: 3 nodes have 2 unknown classes: "Far Away" \\(nodes 4, 6:2\\); "Film Grain" \\(node 8\\)\\. The file does not name the widgets of nodes 4, 6:2: ${hint}$`,
      ),
    );
    assert.deepEqual(
      all.details.unknownClasses?.map(({ classType, nodeIds }) => [classType, nodeIds]),
      [
        ["Far Away", ["4", "6:2"]],
        ["Film Grain", ["8"]],
      ],
    );
  });

  it("knows the widgets of ComfyUI's core classes that are not nodes here", () => {
    assert.deepEqual(
      registry.keys().filter((name) => coreWidgets(name) !== undefined),
      [],
    );
    const prompt = node(4, "CLIPTextEncodePixArtAlpha", { inputs: [open("clip", 1)], widgets_values: [64, 32, "a"] });
    const graph = convert(
      [node(5, "CLIPLoader", { widgets_values: ["t5", "pixart"] }), prompt],
      [[1, 5, 0, 4, 0, "CLIP"]],
    );
    assert.deepEqual(graph["4"]!.inputs, { width: 64, height: 32, text: "a", clip: ["5", 0] });
    assert.deepEqual(graph["5"]!.inputs, { clip_name: "t5", type: "pixart" });
  });

  it("gives widgets that came after the file their defaults, lists their first choice", () => {
    const graph = convert([
      node(1, "VAEDecodeTiled", { widgets_values: [768] }),
      node(2, "BasicScheduler", { widgets_values: ["karras", 5] }),
      node(3, "UNETLoader", { widgets_values: ["x.safetensors"] }),
      node(4, "InpaintModelConditioning"),
      node(5, "KSampler", { widgets_values: { seed: 7, cfg: 2 } }),
    ]);
    assert.deepEqual(graph["1"]!.inputs, { tile_size: 768, overlap: 64, temporal_size: 64, temporal_overlap: 8 });
    assert.deepEqual(graph["2"]!.inputs, { scheduler: "karras", steps: 5, denoise: 1 });
    assert.deepEqual(graph["3"]!.inputs, { unet_name: "x.safetensors", weight_dtype: "default" });
    assert.deepEqual(graph["4"]!.inputs, { noise_mask: true });
    const { seed, cfg, steps, sampler_name, denoise } = graph["5"]!.inputs;
    assert.deepEqual([seed, cfg, steps, sampler_name, denoise], [7, 2, 20, "euler", 1]);
  });

  it("follows the order of a newer editor's file, which lists all widgets of a node", () => {
    const widget = (name: string, link: number | null = null) => ({ ...open(name, link), widget: { name } });
    const listed = (...names: string[]) => names.map((name) => widget(name));
    const newer = listed("height", "tint", "width", "batch_size", "color");
    const inputsOf = (inputs: object[], values: unknown[]) =>
      convert([node(1, "EmptyImage", { inputs, widgets_values: values })])["1"]!.inputs;
    const expected = { height: 8, tint: "red", width: 16, batch_size: 1, color: 0 };
    assert.deepEqual(inputsOf(newer, [8, "red", 16, 1, 0]), expected);
    // of an older file, inputs that take links: their order is that in which they were made
    const older = [widget("height", 7), widget("width", 8), widget("color", 9), widget("batch_size", 10)];
    assert.deepEqual(inputsOf(older, [16, 8, 1, 0]), { width: 16, height: 8, batch_size: 1, color: 0 });
  });

  it("reads values by their names first, of each kind of node", () => {
    const named = (values: object, list: unknown[] = []) => ({ widgets_values: list, widgets_values_named: values });
    const graph = convert(
      [
        node(1, "EmptyImage", named({ height: 16, width: 32, batch_size: 1, color: 5 }, [5, 1, 16, 32])),
        node(2, "KSampler", named({ seed: 7, control_after_generate: "fixed", steps: 3 }, [7, "fixed"])),
        node(3, "Film Grain", {
          inputs: [open("image", 1, "IMAGE")],
          ...named({ strength: 0.3, mode: "fixed", control_after_generate: "fixed" }, [0.3, "fixed", "fixed"]),
        }),
        node(4, "PrimitiveNode", named({ value: 48, control_after_generate: "fixed" }, [47, "fixed"])),
        node(5, "EmptyImage", {
          inputs: [{ ...open("width", 4), widget: { name: "width" } }],
          ...named({}, [1, 2, 3, 4]),
        }),
        node(6, "SetNode", { inputs: [open("IMAGE", 5)], ...named({ Constant: "picture" }) }),
        node(7, "GetNode", named({ Constant: "picture" })),
        node(9, "PreviewImage", { inputs: [open("images", 6, "IMAGE")] }),
        node(10, "PreviewImage", { inputs: [open("images", 7, "IMAGE")] }),
      ],
      [
        [1, 1, 0, 3, 0, "IMAGE"],
        [4, 4, 0, 5, 0, "INT"],
        [5, 1, 0, 6, 0, "IMAGE"],
        [6, 7, 0, 9, 0, "IMAGE"],
        [7, 3, 0, 10, 0, "IMAGE"],
      ],
    );
    assert.deepEqual(graph["1"]!.inputs, { height: 16, width: 32, batch_size: 1, color: 5 });
    const { seed, steps, cfg } = graph["2"]!.inputs;
    assert.deepEqual([seed, steps, cfg], [7, 3, 8]);
    assert.deepEqual(graph["3"]!.inputs, { strength: 0.3, mode: "fixed", image: ["1", 0] });
    assert.deepEqual(graph["5"]!.inputs, { width: 48, height: 2, batch_size: 3, color: 4 });
    assert.deepEqual(graph["9"]!.inputs, { images: ["1", 0] });
  });

  it("reads values by their names, the others from the list, of one node and of a group", async () => {
    const sampler = (names: object) =>
      convert([
        node(1, "KSampler", {
          widgets_values: [1, "fixed", 20, 5, "heun", "karras", 0.5],
          widgets_values_named: names,
        }),
      ])["1"]!.inputs;
    const listed = { seed: 1, steps: 20, cfg: 5, sampler_name: "heun", scheduler: "karras", denoise: 0.5 };
    assert.deepEqual(sampler({ seed: 9, steps: 3, cfg: null }), { ...listed, seed: 9, steps: 3 });
    // the list has no value for a widget that the class has gained since
    const { cfg } = convert([
      node(1, "KSampler", {
        widgets_values: [1, "fixed", "heun"],
        widgets_values_named: { seed: 1, sampler_name: "heun" },
      }),
    ])["1"]!.inputs;
    assert.equal(cfg, 8);
    const grain = node(3, "Film Grain", {
      inputs: [open("image", 1)],
      widgets_values: [3, 4],
      widgets_values_named: { a: 3 },
    });
    await refuses(
      () => convert([grain, node(1, "EmptyImage")], [[1, 1, 0, 3, 0, "IMAGE"]]),
      "graph.unknown-class",
      /Film Grain/,
    );

    const text = (title?: string) => node(0, "CLIPTextEncode", { title, widgets_values: ["inner"] });
    const group = { nodes: [text(), text(), text(), text("Mood"), node(0, "KSampler")], links: [], external: [] };
    const config = { 4: { input: { steps: { name: "Rounds" } } } };
    const texts = (rest: object) => {
      const extra = { groupNodes: { G: { ...group, config } } };
      const graph = convert([node(7, "workflow>G", rest)], [], { extra });
      return [...[0, 1, 2, 3].map((id) => graph[`7:${id}`]!.inputs.text), graph["7:4"]!.inputs.steps];
    };
    const values = ["a", null, "c", "d", 1, "fixed", 30];
    assert.deepEqual(texts({ widgets_values: values }), ["a", "inner", "c", "d", 30]);
    const names = { text: "n", "CLIPTextEncode 2 text": "o", "Mood text": "p", Rounds: 4 };
    assert.deepEqual(texts({ widgets_values: values, widgets_values_named: names }), ["n", "inner", "o", "p", 4]);
  });

  it("leaves a hole among the values where it is", () => {
    const sparse: unknown[] = [16];
    sparse[2] = 2;
    sparse[3] = 9;
    for (const values of [sparse, [16, null, 2, 9]]) {
      const graph = convert([node(1, "EmptyImage", { widgets_values: values })]);
      assert.deepEqual(graph["1"]!.inputs, { width: 16, height: 512, batch_size: 2, color: 9 });
    }
    const sampler = (...values: unknown[]) => {
      const { seed, steps, cfg, denoise } = convert([node(1, "KSampler", { widgets_values: values })])["1"]!.inputs;
      return [seed, steps, cfg, denoise];
    };
    assert.deepEqual(sampler(7, null, 30, 6, "euler", "normal", 0.5), [7, 30, 6, 0.5]);
    assert.deepEqual(sampler(7, null, 6, "euler", "normal", 0.5), [7, 20, 6, 0.5]);
    assert.deepEqual(sampler(null, "fixed", 30, 6, "euler", "normal", 0.5), [0, 30, 6, 0.5]);
    const reversed = convert([node(1, "PrimitiveNode", { widgets_values: [null] }), preview]);
    assert.deepEqual(reversed["9"]!.inputs, {});
  });

  it("follows a newer editor's file whose class has gained a widget since", () => {
    const widget = (name: string) => ({ ...open(name), widget: { name } });
    const inputs = ["height", "batch_size", "color"].map(widget);
    const graph = convert([node(1, "EmptyImage", { inputs, widgets_values: [8, 2, 7] })]);
    assert.deepEqual(graph["1"]!.inputs, { width: 512, height: 8, batch_size: 2, color: 7 });
  });

  it("converts a group node whose inner class has gained a widget since", () => {
    const widget = (name: string) => ({ ...open(name), widget: { name } });
    const save = node(2, "SaveImage", { index: 1, inputs: [open("images")], widgets_values: ["inner"] });
    const grouped = (inner: object, values: unknown[], inputs: object[] = []) => {
      const group = { nodes: [inner, save], links: [[0, 0, 1, 0, 0, "IMAGE"]], external: [] };
      const nodes = [
        node(7, "workflow>Made", { inputs, widgets_values: values }),
        node(8, "PrimitiveInt", { widgets_values: [64, "fixed"] }),
      ];
      const graph = convert(nodes, [[5, 8, 0, 7, 0, "INT"]], { extra: { groupNodes: { Made: group } } });
      return [graph["7:0"]!.inputs, graph["7:1"]!.inputs];
    };
    const saved = { filename_prefix: "x", images: ["7:0", 0] };
    // the last widget came later
    const older = node(1, "EmptyImage", { index: 0, widgets_values: [1, 2, 3] });
    assert.deepEqual(grouped(older, [16, 8, 2, "x"]), [{ width: 16, height: 8, batch_size: 2, color: 0 }, saved]);
    // the first one came later, and the file lists the others
    const newer = { ...older, inputs: ["height", "batch_size", "color"].map(widget) };
    assert.deepEqual(grouped(newer, [8, 2, 5, "x"]), [{ width: 512, height: 8, batch_size: 2, color: 5 }, saved]);
    // one of them is a socket of the group node
    const converted = node(1, "EmptyImage", { index: 0, inputs: [widget("height")], widgets_values: [1, 2, 3] });
    const [inputs, rest] = grouped(converted, [16, 2, "x"], [{ ...open("height", 5), type: "INT" }]);
    assert.deepEqual([inputs, rest], [{ width: 16, height: ["8", 0], batch_size: 2, color: 0 }, saved]);
  });

  it("leaves out a node of such a class that nothing is linked to, and says so", () => {
    const warnings: string[] = [];
    const workflow = { nodes: [node(4, "Some Label", { widgets_values: ["x"] })], links: [] };
    assert.deepEqual(convertWorkflow(workflow, { onWarning: (message) => warnings.push(message) }), {});
    assert.deepEqual(warnings, [
      "Workflow: node 4 (Some Label) is left out: its class is unknown, and nothing is linked to it.",
    ]);
    const { warnings: found } = validateGraph({ ...workflow, nodes: [...workflow.nodes, node(5, "PreviewAny")] });
    assert.equal(found[0]?.message, warnings[0]);
  });

  it("says so wherever such a file runs", async () => {
    const nodes = [
      node(1, "EmptyImage", { widgets_values: [16, 8, 1, 0] }),
      node(2, "SaveImage", { inputs: [open("images", 1, "IMAGE")], widgets_values: ["a"] }),
      node(4, "Some Label", { widgets_values: ["x"] }),
    ];
    const workflow = { nodes, links: [[1, 1, 0, 2, 0, "IMAGE"]] };
    const expected = ["Workflow: node 4 (Some Label) is left out: its class is unknown, and nothing is linked to it."];
    const options = { outputDir: outputDir() };
    const renderer = createRenderer({ threads: 1 });
    const told = async (events: AsyncIterable<{ type: string; message?: string }>) => {
      const warnings = [];
      for await (const { type, message } of events) if (type === "warning") warnings.push(message);
      return warnings;
    };
    assert.deepEqual((await render(workflow, options)).warnings, expected);
    try {
      assert.deepEqual((await renderer.render({ graph: workflow, ...options })).warnings, expected);
    } finally {
      await renderer.close();
    }
    assert.deepEqual(await told(executeGraph(workflow, options)), expected);
    assert.deepEqual(await told(executeGraph(workflow, { ...options, validate: false })), expected);
    assert.deepEqual(await told(batch(workflow, [{ "2.filename_prefix": "b" }], options)), expected);
  });

  it("fills prefixes from every node of the file, warns of what names nothing", () => {
    const saving = (id: number, prefix: string) =>
      node(id, "SaveImage", { inputs: [open("images", 1, "IMAGE")], widgets_values: [prefix] });
    const inner = node(3, "EmptyLatentImage", { title: "Inside", widgets_values: [32, 8, 1] });
    const nodes = [
      node(1, "EmptyImage", { widgets_values: [16, 8, 1, 0] }),
      saving(2, "%EmptyLatentImage.width%_%Note.text%_%Seed.value%_%Inside.width%_%Nobody.x%"),
      node(4, "EmptyLatentImage", { mode: 2, widgets_values: [64, 8, 1] }),
      node(5, "Note", { widgets_values: ["hi"] }),
      node(6, "PrimitiveNode", { title: "Seed", widgets_values: [7, "fixed"] }),
      node(7, "S"),
    ];
    const definitions = { subgraphs: [{ id: "S", inputs: [], nodes: [inner], links: [] }] };
    const warnings: string[] = [];
    const onWarning = (message: string) => void warnings.push(message);
    const graph = convertWorkflow({ nodes, links: [[1, 1, 0, 2, 0, "IMAGE"]], definitions }, { onWarning });
    const { inputs } = graph["2"] as { inputs: object };
    assert.deepEqual(inputs, { filename_prefix: "64_hi_7_32_%Nobody.x%", images: ["1", 0] });
    assert.deepEqual(warnings, [
      'Workflow: node 2 (SaveImage), input "filename_prefix": "%Nobody.x%" matches neither a date nor a value of the graph and is kept unchanged.',
    ]);
  });

  it("takes the first of the alternatives in prompts, and removes comments", () => {
    const cases: [string, string][] = [
      ["a {red|blue} fox", "a red fox"],
      ["{a|{b|c}} {{d|e} f|g} {h}", "a d f h"],
      ["\\{kept\\|\\} a|b } \\x \\", "{kept|} a|b } \\x \\"],
      ["one // two\nthree /* four\n */ five", "one \nthree  five"],
      ["https://example.com/a, 1/2, /* open {a|b", "https:"],
      ["1/2, /* open {a|b", "1/2, /* open a"],
      ["{a|b|", "a"],
    ];
    for (const [text, expected] of cases) {
      const nodes = [node(6, "CLIPTextEncode", { widgets_values: [text] })];
      assert.equal(convert(nodes)["6"]!.inputs.text, expected, text);
    }
    const other = convert([node(6, "PrimitiveString", { widgets_values: ["{a|b} // c"] })]);
    assert.equal(other["6"]!.inputs.value, "{a|b} // c");
  });

  it("refuses nodes whose links are not in the file", async () => {
    const expected = /^Workflow: node 4 \(Anything Everywhere\) cannot be converted: its links are drawn by the editor/;
    await refuses(() => convert([node(4, "Anything Everywhere")]), "graph.invalid", expected);
    assert.deepEqual(convert([node(4, "Anything Everywhere", { mode: 2 })]), {});
  });

  it("refuses a Get node without its Set node", async () => {
    const get = node(3, "GetNode", { widgets_values: ["picture"] });
    const expected = /^Workflow: node 3 \(GetNode\) reads "picture", which no Set node names\.$/;
    await refuses(() => convert([get, preview], [[1, 3, 0, 9, 0, "IMAGE"]]), "graph.invalid", expected);
  });

  it("drops inputs whose reroutes lead back to themselves, nowhere, or to a node that is not there", () => {
    const reroutes = [node(1, "Reroute", { inputs: [open("", 2)] }), node(2, "Reroute", { inputs: [open("", 3)] })];
    for (const last of [[3, 1, 0, 2, 0, "*"], [3, 77, 0, 2, 0, "*"], null]) {
      const links = [[1, 1, 0, 9, 0, "IMAGE"], [2, 2, 0, 1, 0, "*"], last] as Links;
      assert.deepEqual(convert([...reroutes, preview], links)["9"]!.inputs, {});
    }
  });

  it("follows twenty thousand reroutes for a thousand readers", () => {
    const count = 20_000;
    const nodes: object[] = [node(0, "EmptyImage", { widgets_values: [8, 8, 1, 0] })];
    const links: [number, number, number, number, number, string][] = [];
    for (let id = 1; id <= count; id++) {
      links.push([id, id - 1, 0, id, 0, "IMAGE"]);
      nodes.push(node(id, "Reroute", { inputs: [open("", id)] }));
    }
    for (let id = count + 1; id <= count + 1000; id++) {
      links.push([id, count, 0, id, 0, "IMAGE"]);
      nodes.push(node(id, "PreviewImage", { inputs: [open("images", id, "IMAGE")] }));
    }
    const graph = convert(nodes, links);
    assert.equal(Object.keys(graph).length, 1001);
    assert.deepEqual(graph[count + 1000]!.inputs, { images: ["0", 0] });
  });

  it("refuses a subgraph inside itself, and one that grows beyond the bound @long", async () => {
    const subgraph = (id: string, ...types: string[]) => ({
      id,
      nodes: types.map((type, at) => node(at, type)),
      links: [],
    });
    const workflow = (...subgraphs: object[]) => ({ nodes: [node(1, "A")], links: [], definitions: { subgraphs } });
    const deep = /^Workflow: node 1(:0){31,} \(A\): subgraphs are nested deeper than 32 levels\.$/;
    await refuses(() => convertWorkflow(workflow(subgraph("A", "A"))), "graph.invalid", deep);
    const letters = [..."ABCDEFGHIJKLMNOPQRSTU"];
    const doubling = letters.map((id, at) => subgraph(id, letters[at + 1] ?? "Note", letters[at + 1] ?? "Note"));
    const large = /^Workflow: expected at most 200000 nodes with all subgraphs, received more\.$/;
    await refuses(() => convertWorkflow(workflow(...doubling)), "graph.invalid", large);
  });

  it("takes linear time for a node of many inputs, and bounds the inputs of all instances", async () => {
    const many = Array.from({ length: 100_000 }, (_, at) => ({
      ...open(`i${at}`, null, "INT"),
      widget: { name: `i${at}` },
    }));
    const values = many.map((_, at) => at);
    const graph = convert(
      [node(1, "Wide", { inputs: many, widgets_values: values }), preview],
      [[1, 1, 0, 9, 0, "IMAGE"]],
    );
    assert.equal(graph["1"]!.inputs.i99999, 99_999);
    const wide = { id: "W", nodes: [node(1, "Wide", { inputs: many })], links: [] };
    const nodes = Array.from({ length: 1000 }, (_, at) => node(at, "W"));
    const expected = /^Workflow: expected at most 4000000 inputs of all nodes, received more\.$/;
    await refuses(
      () => convertWorkflow({ nodes, links: [], definitions: { subgraphs: [wide] } }),
      "graph.invalid",
      expected,
    );
  });

  it("refuses anything but a workflow, and names of inputs that objects have themselves", async () => {
    const cases: [object, RegExp][] = [
      [{ nodes: [3], links: [] }, /^Workflow: expected each node of the workflow as an object, received 3\.$/],
      [{ nodes: [{ type: "A" }], links: [] }, /^Workflow: expected an id for each node of the workflow/],
      [{ nodes: [{ id: 3 }], links: [] }, /^Workflow: node 3: expected a type, received/],
      [{ nodes: [node(3, "A")], links: [["x"]] }, /^Workflow: expected each link of the workflow from node and output/],
      [
        { nodes: [node(3, "A", { inputs: [open("__proto__")] })], links: [] },
        /^Workflow: .*"__proto__" is not allowed\.$/,
      ],
    ];
    for (const [workflow, expected] of cases) await refuses(() => convertWorkflow(workflow), "graph.invalid", expected);
    await refuses(() => convertWorkflow("[]"), "graph.invalid", /^Workflow: expected an object, received/);
    await refuses(() => convertWorkflow("{"), "graph.invalid-json");
    await refuses(() => convertWorkflow({}, { clocks: 1 } as never), "usage.invalid");
  });

  it("returns a graph in API format as it is, out of any wrapper", () => {
    const graph = { "3": { class_type: "EmptyImage", inputs: { width: 8 } } };
    assert.equal(convertWorkflow(graph), graph);
    assert.equal(convertWorkflow({ prompt: graph }), graph);
    const workflow = { nodes: [node(3, "EmptyImage", { widgets_values: [8, 8, 1, 0] })], links: [] };
    assert.deepEqual(Object.keys(convertWorkflow({ input: { workflow } })), ["3"]);
  });

  it("passes on, through a bypassed node, the input of the output's number, else the first of its type", () => {
    const passing = (inputs: object[], type: string) => {
      const nodes = [
        node(1, "EmptyImage"),
        node(2, "SolidMask"),
        node(3, "Blend", { mode: 4, inputs, outputs: [{ type }, { type }] }),
        node(9, "PreviewImage", { inputs: [open("images", 3, type)] }),
      ];
      const links = [
        [1, 1, 0, 3, 0, "IMAGE"],
        [2, 2, 0, 3, 1, "MASK"],
        [3, 3, 1, 9, 0, type],
      ];
      return convert(nodes, links)["9"]!.inputs.images;
    };
    assert.deepEqual(passing([open("a", 1, "IMAGE"), open("b", 2, "IMAGE")], "IMAGE"), ["2", 0]);
    assert.deepEqual(passing([open("a", 1, "IMAGE"), open("b", 2, "MASK")], "IMAGE"), ["1", 0]);
    assert.deepEqual(passing([open("a", 1, "*"), open("b", 2, "MASK")], "IMAGE"), ["1", 0]);
    assert.deepEqual(passing([open("a", 1, "IMAGE"), open("b", 2, "MASK")], "*"), ["2", 0]);
    assert.equal(passing([open("a", 1, "LATENT"), open("b", 2, "MASK")], "IMAGE"), undefined);
  });
});
