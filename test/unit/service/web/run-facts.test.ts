import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseGraph } from "#src/graph/parse.js";
import { factsOf, type RunFacts } from "#src/service/web/run-facts.js";
import { root } from "../../../helpers/folders.js";

const text = readFileSync(join(root, "examples/text-to-image.json"), "utf8").replace(
  /"text": "[^"]*"/,
  '"text": "{{message}} at {{time}}"',
);

function facts(message: string, graph: string | null = text, name: string | null = "default"): RunFacts {
  const run = { message, graph: graph === null ? null : { name, text: graph } };
  return factsOf(run, graph === null ? undefined : parseGraph(graph));
}

const valueNamed = ({ values }: RunFacts, name: string) => values.find(([key]) => key === name)?.[1];

describe("facts of a run", () => {
  it("message that is JSON: its values, then what the filled graph holds", () => {
    const found = facts('{"message": "a lake", "time": "dawn"}');
    assert.equal(found.title, "a lake");
    assert.deepEqual(found.values.slice(0, 3), [
      ["message", "a lake"],
      ["time", "dawn"],
      ["Positive prompt", "a lake at dawn"],
    ]);
    assert.equal(valueNamed(found, "Seed"), "7");
    assert.deepEqual(found.models, ["preview-sd15.safetensors"]);
    assert.ok(found.searched.includes("a lake at dawn") && found.searched.includes("preview-sd15.safetensors"));
  });

  it("graph with titled primitives: their values, those of the graph and those of the message, each once", () => {
    const own = readFileSync(join(root, "examples/hook.json"), "utf8");
    const plain = facts("a lake", own);
    for (const [name, value] of [
      ["Seed", "7"],
      ["Steps", "20"],
      ["Width", "512"],
      ["Height", "512"],
      ["CFG", "7"],
    ])
      assert.equal(valueNamed(plain, name!), value, name);
    const set = facts('{"message": "a lake", "steps": 7}', own);
    assert.deepEqual(set.values.slice(0, 2), [
      ["message", "a lake"],
      ["steps", "7"],
    ]);
    assert.deepEqual(
      ["Positive prompt", "Steps", "Seed", "CFG"].map((name) => valueNamed(set, name)),
      [undefined, undefined, "7", "7"],
    );
  });

  it("graph of its own: its prompt, and seeds with every digit", () => {
    const graph = text
      .replace("{{message}} at {{time}}", "a red fox")
      .replace('"seed": 7', '"seed": 18446744073709551615');
    const found = facts("", graph, null);
    assert.equal(found.title, "a red fox");
    assert.equal(valueNamed(found, "Seed"), "18446744073709551615");
    assert.ok(found.searched.includes("18446744073709551615"));
  });

  it("plain message without a graph: its first words on one line, without events before it", () => {
    const found = facts("System event: a door\na lake\n\n at dawn", null);
    assert.equal(found.title, "a lake at dawn");
    assert.deepEqual(found.values, [["message", "a lake\n\n at dawn"]]);
  });

  it("hostile and long messages: cut, never half a character, and no value from elsewhere", () => {
    const long = facts(`${"x".repeat(118)}😀 and more ${"y".repeat(100_000)}`, null);
    assert.equal(long.title, `${"x".repeat(118)}…`);
    assert.ok(long.values[0]![1].length <= 2000 && long.searched.length <= 4000);
    assert.equal(facts("", null).title, "");
    assert.equal(facts('{"__proto__": {"message": "x"}}', null).title, '{"__proto__": {"message": "x"}}');
    const unfit = facts('{"no_such_key": 5}');
    assert.deepEqual(unfit.values[0], ["no_such_key", "5"]);
    assert.equal(facts(`{"message": ${"[".repeat(50_000)}`).title.slice(0, 12), '{"message": ');
  });
});
