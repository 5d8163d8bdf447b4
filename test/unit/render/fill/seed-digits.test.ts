import assert from "node:assert/strict";
import { parseJson } from "#src/io/json/lossless.js";
import { registry } from "#src/nodes/index.js";
import { fillGraph } from "#src/render/fill/fill.js";
import { lackOfDigits } from "#src/render/fill/seed-digits.js";
import { seededGraph } from "../../../helpers/items/items.js";

describe("lackOfDigits", () => {
  it("refuses what spreadsheets and programs write for a long seed", () => {
    const texts = ["1.84467E+19", "1,84467E+19", "1.8E+19", "1.8e19", "1.23457E+11", "9007199254740993.0", " 1E+3 "];
    for (const text of texts) assert.match(lackOfDigits(text) ?? "", /^expected a seed with all its digits, /, text);
    for (const json of ["1.84467E+19", "1e+16", "18446744073709551616.0"])
      assert.notEqual(lackOfDigits(parseJson(json)), undefined, json);
  });

  it("leaves a seed with all its digits, and anything but a number, alone", () => {
    const texts = ["18446744073709551615", "42", "42.0", "-1", "", "a fox", "18,446,744", "{{seed}}", "e5"];
    for (const text of texts) assert.equal(lackOfDigits(text), undefined, text);
    for (const json of ["18446744073709551615", "42", "42.0", "true", "null"])
      assert.equal(lackOfDigits(parseJson(json)), undefined, json);
  });

  it("takes linear time for a hostile text", () => {
    assert.equal(lackOfDigits(`${"1".repeat(1_000_000)}e`), undefined);
  });
});

describe("fillGraph", () => {
  const fill = (values: Record<string, unknown>) => fillGraph(seededGraph(), values, (type) => registry.get(type));

  it("refuses a shortened seed by its key, whatever form the key has", () => {
    for (const key of ["5.seed", "seed"]) {
      const message = `set ${key}: expected a seed with all its digits, received "1.84467E+19": a number with an exponent does not show them.`;
      assert.throws(() => fill({ [key]: "1.84467E+19" }), { code: "usage.invalid", message });
    }
  });

  it("refuses a shortened seed that reaches its sampler by links", () => {
    const graph = {
      ...seededGraph(),
      "5": { class_type: "ext latentNoisy", inputs: { seed: ["10", 0], steps: ["13", 0] } },
      "10": { class_type: "PrimitiveInt", inputs: { value: ["11", 0] } },
      "11": { class_type: "PrimitiveInt", inputs: { value: 7 }, _meta: { title: "Seed" } },
      "12": { class_type: "PrimitiveInt", inputs: { value: "{{linked}}" } },
      "13": { class_type: "PrimitiveInt", inputs: { value: 20 }, _meta: { title: "Steps" } },
      "14": { class_type: "ext latentNoisy", inputs: { seed: ["12", 0] } },
      // a circle of links ends too
      "15": { class_type: "PrimitiveInt", inputs: { value: ["16", 0] } },
      "16": { class_type: "PrimitiveInt", inputs: { value: ["15", 0] } },
      "17": { class_type: "ext latentNoisy", inputs: { seed: ["16", 0] } },
    };
    for (const key of ["Seed", "11.value", "10.value", "linked", "12.value", "15.value"]) {
      const values = { [key]: "1.84467E+19" };
      const message = `set ${key}: expected a seed with all its digits, received "1.84467E+19": a number with an exponent does not show them.`;
      assert.throws(() => fillGraph(graph, values, (type) => registry.get(type)), { code: "usage.invalid", message });
    }
    for (const values of [{ Seed: "18446744073709551615" }, { Steps: "1e3" }, { "13.value": "1e3" }])
      assert.doesNotThrow(() => fillGraph(graph, values, (type) => registry.get(type)));
  });

  it("takes a number with an exponent for an input that is not a seed", () => {
    const filled = fill({ "5.steps": "1e3" }) as Record<string, { inputs: Record<string, unknown> }>;
    assert.equal(Number(filled["5"]!.inputs.steps), 1000);
  });
});
