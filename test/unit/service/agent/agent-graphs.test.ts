import assert from "node:assert/strict";
import { NamedGraphs, readSources } from "#src/service/agent/agent-graphs.js";
import { refuses } from "../../../helpers/errors.js";

const graph = (text: string) => ({
  1: {
    class_type: "ext saveTextLazy",
    inputs: { text, output_file_path: ".", file_name: "a", file_extension: "txt", overwrite: true },
  },
});

describe("NamedGraphs", () => {
  it("`graph` is the default by that name, else the first of `graphs`", () => {
    const both = new NamedGraphs(readSources({ graph: graph("x"), graphs: { a: graph("y") } }, {}), {});
    assert.deepEqual([both.default.name, both.names], ["default", ["default", "a"]]);
    const named = new NamedGraphs(readSources({ graphs: { b: graph("x"), a: graph("y") } }, {}), {});
    assert.deepEqual([named.default.name, named.names], ["b", ["b", "a"]]);
    assert.equal(named.find("toString"), undefined);
  });

  it("a wrong name, or no graph at all, is refused in a sentence", async () => {
    await refuses(() => readSources({ graphs: {} }, {}), "usage.invalid", /at least one graph/);
    for (const name of ["", "1", "a/b", "a".repeat(65)]) {
      await refuses(
        () => readSources({ graphs: { [name]: graph("x") } }, {}),
        "usage.invalid",
        /^graphs: a name has 1 to 64 characters/,
      );
    }
    const twice = { graph: graph("x"), graphs: { default: graph("y") } };
    await refuses(() => readSources(twice, {}), "usage.invalid", /is not "default"; received "default"/);
  });

  it("a wrong graph in a reload changes nothing", async () => {
    const graphs = new NamedGraphs(readSources({ graphs: { a: graph("x") } }, {}), {});
    const before = graphs.default;
    const wrong = readSources({ graphs: { a: graph("y"), b: { 1: { class_type: "NoSuch", inputs: {} } } } }, {});
    await refuses(() => graphs.replace(wrong), "graph.unknown-class");
    assert.equal(graphs.default, before);
    assert.deepEqual(graphs.names, ["a"]);
  });
});
