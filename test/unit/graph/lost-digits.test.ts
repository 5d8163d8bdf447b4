import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  batch,
  convertWorkflow,
  decodePng,
  executeGraph,
  parseGraphText,
  printGraphText,
  render,
  validateGraph,
} from "latentkit";
import { parseGraph } from "#src/graph/parse.js";
import { refuses } from "../../helpers/errors.js";
import { root, temporaryFolder } from "../../helpers/folders.js";
import { node } from "../../helpers/graph/graph-nodes.js";

const SEED = "18446744073709551615";
const text = `{"10": {"class_type": "A", "inputs": {"seed": ${SEED}, "strength": 1e300, "list": {"__value__": [1]}}}, "2": {"class_type": "A", "inputs": {}}}`;

describe("digits of a graph that is an object", () => {
  const folder = temporaryFolder();

  it("are refused if JavaScript has rounded them, with the ways to keep them", async () => {
    const error = await refuses(() => parseGraph(JSON.parse(text)), "graph.invalid");
    assert.match(
      error.message,
      /^Node 10, input "seed": expected .* all its digits, received 18446744073709552000, .*2\^53/,
    );
    assert.match(error.message, /text or bigint.*parseGraphText/);
    assert.deepEqual([error.details.nodeId, error.details.input], ["10", "seed"]);
    for (const value of [2 ** 53, -(2 ** 53), 2 ** 64, [2 ** 60], { __value__: [1, { a: 2 ** 60 }] }]) {
      await refuses(() => parseGraph({ "1": node("A", { x: value }) }), "graph.invalid", /input "x"/);
    }
  });

  it("pass as texts, as bigints, and if they are not whole numbers of 64 bits", () => {
    for (const value of [SEED, 18446744073709551615n, 2 ** 53 - 1, 1e300, 0.1, -0, Number.NaN, [["1", 0]]]) {
      parseGraph({ "1": node("A", { x: value }) });
    }
    parseGraph({ "1": { class_type: "A", inputs: {}, _meta: { id: 2 ** 60 } } });
    parseGraph(text);
  });

  it("are refused by every function that takes a graph", async () => {
    const graph = JSON.parse(readFileSync(join(root, "examples/first-light.json"), "utf8"));
    graph["8"].inputs.seed = Number(SEED);
    const verdict = validateGraph(graph);
    assert.match(verdict.ok ? "" : verdict.error.sentence, /Node 8, input "seed"/);
    await refuses(() => render(graph, { outputDir: folder() }), "graph.invalid", /Node 8, input "seed"/);
    await refuses(() => batch(graph, [{}], { outputDir: folder() }).next(), "graph.invalid", /Node 8, input "seed"/);
    await refuses(() => executeGraph(graph).next(), "graph.invalid", /Node 8, input "seed"/);
  });

  it("are refused in values of set", async () => {
    const graph = join(root, "examples/first-light.json");
    const set = { "8.seed": Number(SEED) };
    const options = { outputDir: folder(), targets: ["11"] };
    await refuses(() => render(graph, { ...options, set }), "graph.invalid", /Node 8, input "seed"/);
    await refuses(
      () => batch(graph, [{}], { ...options, set }).next(),
      "usage.invalid",
      /set, 8.seed: .*2\^53 as a bigint or text/,
    );
    const events = [];
    for await (const event of batch(graph, [set], options)) events.push(event);
    const failed = events.find((event) => event.type === "item-failed");
    assert.match(failed!.error.message, /Item 0, 8.seed: .*2\^53 as a bigint or text.*received 18446744073709552000/);
  });

  it("are complete in the result of parseGraphText, in the order of the text", async () => {
    const graph = parseGraphText(`\ufeff${text}`);
    assert.equal((graph["10"] as { inputs: { seed: unknown } }).inputs.seed, 18446744073709551615n);
    assert.deepEqual(parseGraph(graph).ids, ["10", "2"]);
    await refuses(() => parseGraphText("{"), "graph.invalid-json", /^Graph, line 1/);
    await refuses(() => parseGraphText("[]"), "graph.invalid", /expected an object/);
    await refuses(() => parseGraphText({} as string), "usage.invalid", /parseGraphText: expected a JSON text/);
  });

  it("are complete in every example imported as a JSON module", async () => {
    for (const place of ["examples", "test/graphs"]) {
      for (const name of readdirSync(join(root, place)).filter((file) => file.endsWith(".json"))) {
        const module = await import(join(root, place, name), { with: { type: "json" } });
        assert.ok(parseGraph(module.default).ids.length > 0, name);
      }
    }
    const { default: example } = await import(join(root, "examples/first-light.json"), { with: { type: "json" } });
    const inputDir = join(root, "examples/input");
    const { files } = await render(example, { outputDir: folder(), inputDir, targets: ["11"] });
    const shown = await decodePng(readFileSync(join(root, "docs/first-light/2-noise_00001_.png")));
    const picture = await decodePng(readFileSync(files.at(-1)!.path));
    assert.deepEqual(picture.data, shown.data);
  });

  it("are written by printGraphText, and by JSON.stringify as numbers or not at all", async () => {
    const written = '{"1": {"class_type": "A", "inputs": {"a": 7.0, "b": 1e-07, "c": 0.10, "d": 5}}}';
    const graph = parseGraphText(written);
    assert.equal(JSON.stringify(graph), '{"1":{"class_type":"A","inputs":{"a":7,"b":1e-7,"c":0.1,"d":5}}}');
    assert.equal(
      printGraphText(graph).replace(/\s+/g, " "),
      written
        .replace(/([{}])/g, " $1 ")
        .replace(/\s+/g, " ")
        .trim(),
    );
    const values = `"widgets_values": [${SEED}, "fixed", 20, 7.0, "euler", "normal", 1.0]`;
    const converted = convertWorkflow(`{"nodes": [{"id": 3, "type": "KSampler", ${values}}], "links": []}`);
    assert.match(printGraphText(converted), /"seed": 18446744073709551615,.*"cfg": 7\.0,/s);
    assert.throws(() => JSON.stringify(converted), TypeError);
    const huge = parseGraphText('{"1": {"class_type": "A", "inputs": {"a": 1e999}}}');
    const error = await refuses(() => JSON.stringify(huge), "value.invalid");
    assert.match(error.message, /1e999 is too large for a JavaScript number; print it with printGraphText\.$/);
    await refuses(() => printGraphText([]), "usage.invalid", /printGraphText: expected a graph, received a list of 0/);
  });
});
