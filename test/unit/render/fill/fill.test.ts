import assert from "node:assert/strict";
import { LatentkitError } from "#src/base/errors.js";
import { freezeJson, NumberLiteral, parseJson } from "#src/io/json/lossless.js";
import { printJson } from "#src/io/json/print.js";
import type { InputSpec } from "#src/nodes/inputs.js";
import { fillGraph } from "#src/render/fill/fill.js";

const spec = (type: string): InputSpec => ({ type, optional: false, lazy: false, options: {} });
const CLASSES: Record<string, Record<string, InputSpec>> = {
  Text: { text: spec("STRING"), mode: spec("COMBO") },
  Noise: { seed: spec("INT"), strength: spec("FLOAT"), average: spec("BOOLEAN"), pipe: spec("PIPE_LINE") },
};
const definitionOf = (type: string) => {
  const inputs = CLASSES[type];
  return inputs && { inputs, displayName: `The ${type}` };
};
const graph = () =>
  parseJson(`{
    "10": { "class_type": "Text", "inputs": { "text": "a {{animal}} and a {{ animal }}, {{light}}" } },
    "2.1": { "class_type": "Noise", "inputs": { "seed": "{{seed}}", "strength": 7.0, "pipe": ["10", 0] } },
    "3": { "class_type": "Unheard", "inputs": { "odd.name": 1 } }
  }`) as Record<string, unknown>;
const fill = (values: Record<string, unknown>) => printJson(fillGraph(graph(), values, definitionOf));
const refused = (values: Record<string, unknown>, pattern: RegExp) =>
  assert.throws(
    () => fill(values),
    (error: unknown) =>
      error instanceof LatentkitError && error.code === "usage.invalid" && pattern.test(error.message),
  );

describe("fillGraph", () => {
  it("changes nothing without values, and never the graph it was given", () => {
    assert.equal(fill({}), printJson(graph()));
    const given = graph();
    fillGraph(given, { animal: "fox", "3.odd.name": 2 }, definitionOf);
    assert.equal(printJson(given), printJson(graph()));
  });

  it("shares frozen nodes that stay as they are, and fills copies of the others alike", () => {
    const given = graph();
    for (const node of Object.values(given)) freezeJson(node);
    const values = { animal: "fox", "3.odd.name": 2 };
    const filled = fillGraph(given, values, definitionOf);
    assert.equal(printJson(filled), fill(values));
    assert.deepEqual(
      Object.keys(given).filter((id) => filled[id] === given[id]),
      [],
    );
    const other = fillGraph(given, { "10.text": "x" }, definitionOf);
    assert.equal(printJson(other), fill({ "10.text": "x" }));
    assert.equal(other["3"], given["3"]);
    assert.notEqual(other["2.1"], given["2.1"], "it holds a placeholder");
    assert.equal(printJson(given), printJson(graph()));
  });

  it("refuses undefined, functions and symbols in place of values", () => {
    for (const value of [undefined, () => 1, Symbol("a")]) {
      for (const key of ["animal", "seed", "2.1.strength"]) {
        refused(
          { [key]: value },
          new RegExp(`^set ${key}: expected a value, received (undefined|a function|a Symbol)\\.$`),
        );
      }
    }
  });

  it("fills placeholders once, inside strings and as whole values", () => {
    const text = fill({ animal: "{{light}}", light: "$& dusk" });
    assert.match(text, /"a \{\{light\}\} and a \{\{light\}\}, \$& dusk"/);
    assert.match(fill({ seed: 18446744073709551615n }), /"seed": 18446744073709551615,/);
    assert.match(fill({ animal: new NumberLiteral("7.0"), light: true }), /"a 7\.0 and a 7\.0, true"/);
    refused({ animal: ["fox"] }, /Cannot put a list of 1 into a text/);
  });

  it("sets inputs by node and name, whatever dots they hold, and keeps the order of keys", () => {
    assert.match(
      fill({ "10.text": "x", "10.mode": "5" }),
      /^\{"10": \{"class_type": "Text", "inputs": \{"text": "x", "mode": "5"\}\}/,
    );
    assert.match(fill({ "2.1.strength": 0.5 }), /"strength": 0\.5/);
    assert.match(fill({ "3.odd.name": [1, "y"] }), /"odd\.name": \[1, "y"\]/);
  });

  it("reads numbers and booleans if the input is one, with every digit", () => {
    assert.match(fill({ "2.1.seed": "18446744073709551615" }), /"seed": 18446744073709551615,/);
    assert.match(fill({ seed: "007" }), /"seed": "007"/);
    assert.match(fill({ "2.1.strength": "0.10" }), /"strength": 0\.10,/);
    assert.match(fill({ "2.1.average": "false" }), /"average": false/);
    for (const text of ["TRUE", "True"]) assert.match(fill({ "2.1.average": text }), /"average": true/);
    assert.match(fill({ "10.text": "12" }), /"text": "12"/);
  });

  it("names what does not exist and what was meant", () => {
    refused({ "10.txt": 1 }, /node 10 \(Text\) has no input "txt"\. Did you mean 10\.text\?/);
    refused({ "11.text": 1 }, /the graph has no node "11"\./);
    refused({ animl: 1 }, /no placeholder \{\{animl\}\} is in the graph\. Did you mean animal\?/);
    refused({ "3.constructor": 1 }, /has no input "constructor"/);
    refused({ "toString.x": 1 }, /the graph has no node "toString"/);
  });
});
