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

  it("leaves a seed with all its digits, and whatever is no number, alone", () => {
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
      const message = `set ${key}: expected a seed with all its digits, received "1.84467E+19": a number with an exponent does not have them.`;
      assert.throws(() => fill({ [key]: "1.84467E+19" }), { code: "usage.invalid", message });
    }
  });

  it("takes a number with an exponent for an input that is no seed", () => {
    const filled = fill({ "5.steps": "1e3" }) as Record<string, { inputs: Record<string, unknown> }>;
    assert.equal(Number(filled["5"]!.inputs.steps), 1000);
  });
});
