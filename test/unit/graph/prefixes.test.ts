import assert from "node:assert/strict";
import {
  batch,
  createRegistry,
  defineNode,
  executeGraph,
  int,
  type RenderOptions,
  render,
  validateGraph,
} from "latentkit";
import { refuses } from "../../helpers/errors.js";
import { temporaryFolder, tree } from "../../helpers/folders.js";

const clock = () => new Date(2026, 10, 7, 8, 5, 2);

const graphOf = (prefix: unknown, type = "SaveImage") => ({
  "1": {
    class_type: "EmptyImage",
    inputs: { width: 16, height: 8, batch_size: 1, color: 5 },
    _meta: { title: "My Sky" },
  },
  "2": { class_type: type, inputs: { images: ["1", 0], filename_prefix: prefix } },
  "3": { class_type: "PrimitiveString", inputs: { value: "%date:yyyy%/linked" } },
  "4": { class_type: "PrimitiveString", inputs: { value: "%EmptyImage.width%" }, _meta: { title: "a/b" } },
});

describe("texts in the prefix of an API graph", () => {
  const folder = temporaryFolder();
  const names = async (graph: object, options: RenderOptions = {}) => {
    const { status, error, files } = await render(graph, { outputDir: folder(), clock, targets: ["2"], ...options });
    assert.equal(status, "success", error?.message);
    return files.map(({ subfolder, filename }) => `${subfolder}/${filename.replace(/_\d{5}_?\.png$/, "")}`);
  };

  it("are filled as the editor fills them", async () => {
    for (const type of ["SaveImage", "ext saveImageLazy"]) {
      assert.deepEqual(await names(graphOf("%date:yyyy-MM-dd%/img", type)), ["2026-11-07/img"]);
      assert.deepEqual(await names(graphOf("%EmptyImage.color%_%My Sky.height%", type)), ["/5_8"]);
    }
    assert.deepEqual(await names(graphOf("%date:yy.M.d hh-mm-ss%_%width%")), ["/26.11.7 08-05-02_16"]);
    assert.deepEqual(await names(graphOf("%date:yyyy.MM.dd_hh.mm%")), ["/2026.11.07_08.05"]);
    assert.deepEqual(await names(graphOf(["3", 0])), ["2026/linked"]);
    assert.deepEqual(await names(graphOf("2024\\img")), ["2024/img"]);
    assert.deepEqual(await names(graphOf("50% off_v1.2_60%")), ["/50% off_v1.2_60%"]);
  });

  it("take the values that are set", async () => {
    assert.deepEqual(await names(graphOf("%EmptyImage.color%"), { set: { "1.color": 77 } }), ["/77"]);
    const items = [{ "1.color": 8 }, { "1.color": 9 }];
    const options = { outputDir: `${folder()}/batch`, targets: ["2"], clock, concurrency: 1 };
    for await (const event of batch(graphOf("%date:yyyy%/%EmptyImage.color%"), items, options))
      assert.notEqual(event.type, "item-failed");
    assert.ok(Object.keys(tree(`${folder()}/batch`)).every((path) => !path.includes("%")));
  });

  it("are filled behind a lone percent sign, and by an empty text", async () => {
    assert.deepEqual(await names(graphOf("50%_%date:yyyy%_%EmptyImage.width%")), ["/50%_2026_16"]);
    const graph = {
      ...graphOf("a%PrimitiveString.value%b"),
      "3": { class_type: "PrimitiveString", inputs: { value: "" } },
    };
    assert.deepEqual(await names(graph), ["/ab"]);
    const options = { outputDir: folder(), targets: ["2"] };
    const { error } = await render(graphOf("%date:%/img"), options);
    assert.match(error!.message, /relative to the output folder, received "\/img"/);
  });

  it("stay if they name nothing, each with one warning", async () => {
    const sentence = (text: string) =>
      `Node 2 (SaveImage), input "filename_prefix": "${text}" matches neither a date nor a value of the graph and is kept unchanged.`;
    const texts = ["%KSampler.seed%", "%EmptyImage.widht%", "%date%", "%Date:yyyy%", "%A.B.width%", "%1.width%"];
    for (const text of [...texts, "% EmptyImage.width %", "%EmptyImage.width.x%"]) {
      const { files, warnings } = await render(graphOf(`${text}/a`), { outputDir: folder(), clock, targets: ["2"] });
      assert.equal(files[0]!.subfolder, text);
      assert.deepEqual(warnings, [sentence(text)]);
      const verdict = validateGraph(graphOf(`${text}/a`), { targets: ["2"] });
      assert.deepEqual([verdict.ok, verdict.warnings[0]?.message], [true, sentence(text)]);
    }
    const linked = await render(graphOf(["4", 0]), { outputDir: folder(), targets: ["2"] });
    assert.deepEqual(linked.warnings, [sentence("%EmptyImage.width%")]);
    for (const prefix of ["50% off_v1.2_60%", "%width%_v1.final_%height%", "%date:yyyy%_v1.final_%EmptyImage.width%"]) {
      const { warnings } = await render(graphOf(prefix), { outputDir: folder(), targets: ["2"] });
      assert.deepEqual(warnings, []);
    }
  });
});

describe("inputs that a graph lacks", () => {
  const folder = temporaryFolder();
  const lacking = (...left: string[]) => {
    const graph: Record<string, { inputs: Record<string, unknown> }> = graphOf("a");
    for (const key of left) delete graph[key.split(".")[0]!]!.inputs[key.split(".")[1]!];
    return graph;
  };

  it("take their defaults, with a warning of the run", async () => {
    const graph = lacking("1.color", "2.filename_prefix");
    const expected = [
      'Node 2 (SaveImage), input "filename_prefix": the graph has no value for it; the default "latentkit" is used.',
      'Node 1 (EmptyImage), input "color": the graph has no value for it; the default 0 is used.',
    ];
    const { warnings, files } = await render(graph, { outputDir: folder(), targets: ["2"] });
    assert.deepEqual(warnings, expected);
    assert.match(files[0]!.filename, /^latentkit_/);
    const messages: string[] = [];
    for await (const event of executeGraph(graph, { outputDir: folder(), targets: ["2"] }))
      if (event.type === "warning") messages.push(event.message);
    assert.deepEqual(messages, expected);
    const verdict = validateGraph(graph, { targets: ["2"] });
    assert.deepEqual(
      verdict.warnings.map(({ nodeId, input, message }) => [nodeId, input, message]),
      [
        ["2", "filename_prefix", expected[0]],
        ["1", "color", expected[1]],
      ],
    );
  });

  it("take a default too if the node needs no other input", async () => {
    const numbers: unknown[] = [];
    const inputs = { count: int({ default: 5 }), more: int({ optional: true }) };
    const run = ({ count }: { count: number }) => {
      numbers.push(count);
      return {};
    };
    const counter = defineNode({ key: "Counter", inputs, outputs: {}, outputNode: true, run });
    const registry = createRegistry([counter]);
    for (const given of [{}, { more: 1 }, { count: 3 }])
      await render({ "1": { class_type: "Counter", inputs: given } }, { registry });
    assert.deepEqual(numbers, [5, 5, 3]);
  });

  it("are refused without a default, as links and as null", async () => {
    const options = { outputDir: folder(), targets: ["2"] };
    await refuses(() => render(lacking("2.images"), options), "input.missing", /^Node 2 \(SaveImage\), input "images"/);
    const graph = lacking();
    graph["1"]!.inputs.color = null;
    await refuses(() => render(graph, options), "input.missing", /^Node 1 \(EmptyImage\), input "color"/);
    const loader = { "1": { class_type: "CheckpointLoaderSimple", inputs: {} } };
    const verdict = validateGraph(loader, { targets: ["1"] });
    assert.equal(verdict.nodeErrors["1"]?.errors[0]?.code, "input.missing");
  });
});
