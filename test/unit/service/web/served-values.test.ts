import assert from "node:assert/strict";
import { parseGraph } from "#src/graph/parse.js";
import { defaultRegistry } from "#src/render/defaults.js";
import { servedValues } from "#src/service/web/served-values.js";

const sampler = (seed: unknown, text: unknown, more: object = {}) => ({
  1: { class_type: "KSampler", inputs: { seed, steps: 20, ...more } },
  2: { class_type: "CLIPTextEncode", inputs: { text } },
  3: { class_type: "PrimitiveInt", inputs: { value: 5 }, _meta: { title: "copies" } },
});

describe("servedValues", () => {
  const find = (served: object, other: object) =>
    servedValues(parseGraph(JSON.stringify(served)), parseGraph(JSON.stringify(other)), defaultRegistry);

  it("finds the values of placeholders, alone or in a text, and of titled primitives", () => {
    const served = sampler("{{seed}}", "a {{animal}} in a forest");
    const other = { ...sampler(7, "a red {fox} in a forest") };
    other[3] = { ...other[3], inputs: { value: 9 } };
    assert.deepEqual(find(served, other), { seed: "7", animal: "red {fox}", copies: "9" });
    assert.deepEqual(find(sampler("{{seed}}", "{{text}}"), sampler(7, "")), { seed: "7", text: "", copies: "5" });
  });

  it("finds none for a graph that differs in anything else", () => {
    const served = sampler("{{seed}}", "a {{animal}} in a forest");
    assert.equal(find(served, sampler(7, "a fox in a desert")), undefined);
    assert.equal(find(served, sampler(7, "a fox in a forest", { cfg: 1 })), undefined);
    assert.equal(find(served, sampler(["3", 0], "a fox in a forest")), undefined);
    assert.equal(find(served, { 1: sampler(7, "")[1] }), undefined);
    assert.equal(find(sampler(7, "{{a}} and {{a}}"), sampler(7, "x and y")), undefined);
    assert.equal(find(sampler(7, "{{a}}{{b}}"), sampler(7, "xy")), undefined);
    const shorter = find(sampler(7, "aba{{x}}aba"), sampler(7, "aba"));
    assert.equal(shorter, undefined);
  });
});
