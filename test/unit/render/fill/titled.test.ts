import assert from "node:assert/strict";
import { batch, graphSchema, parseGraphText, registry, render } from "latentkit";
import { nodesTitled, titledPrimitives } from "#src/render/fill/titled.js";
import { refuses } from "../../../helpers/errors.js";
import { temporaryFolder } from "../../../helpers/folders.js";

const definitionOf = (type: string) => registry.get(type);
const primitive = (class_type: string, value: unknown, title?: string) => ({
  class_type,
  inputs: { value },
  ...(title !== undefined && { _meta: { title } }),
});

describe("titledPrimitives", () => {
  it("names primitives whose title is not that of their class", () => {
    const graph = {
      "1": primitive("PrimitiveString", "a fox", " Prompt "),
      "2": primitive("PrimitiveInt", 7, "Int"),
      "3": primitive("PrimitiveInt", 7, "PrimitiveInt"),
      "4": primitive("PrimitiveFloat", 1, "Strength"),
      "5": primitive("PrimitiveFloat", 2, "Strength"),
      "6": primitive("PrimitiveInt", ["2", 0], "Linked"),
      "7": primitive("PrimitiveString", "{{key}}", "Filled"),
      "8": primitive("PrimitiveBoolean", true),
      "9": { class_type: "CLIPTextEncode", inputs: { text: "x", clip: ["1", 0] }, _meta: { title: "Positive" } },
      "10": { class_type: "SolidMask", inputs: { value: 1, width: 8, height: 8 }, _meta: { title: "Mask" } },
      "11": primitive("PrimitiveString", "a", "x".repeat(201)),
      "12": primitive("Unknown", 1, "Unknown value"),
    };
    assert.deepEqual(Object.fromEntries(titledPrimitives(graph, definitionOf)), {
      Prompt: ["1"],
      Strength: ["4", "5"],
    });
    assert.deepEqual(nodesTitled(graph, "Strength", definitionOf), ["4", "5"]);
    assert.deepEqual(nodesTitled(graph, "Int", definitionOf), []);
  });
});

describe("set by a title", () => {
  const folder = temporaryFolder();
  const graph = () => ({
    "1": primitive("PrimitiveInt", 8, "Width"),
    "2": { class_type: "SolidMask", inputs: { value: 1, width: ["1", 0], height: 8 } },
    "1.5": primitive("PrimitiveInt", 3, "2.height"),
    "7": primitive("PrimitiveInt", 1, "Twice"),
    "8": primitive("PrimitiveInt", 2, "Twice"),
  });
  const shapeOf = async (set: object) =>
    ((await render(graph(), { targets: ["2"], set: { ...set } })).outputs["2"]![0] as { shape: number[] }).shape;

  it("sets the primitive, from texts too; an id comes first", async () => {
    assert.deepEqual(await shapeOf({}), [1, 8, 8]);
    assert.deepEqual(await shapeOf({ Width: 24 }), [1, 8, 24]);
    assert.deepEqual(await shapeOf({ Width: "16", "2.height": 4 }), [1, 4, 16]);
  });

  it("refuses a title that is unknown or stands twice", async () => {
    await refuses(shapeOf({ Widh: 24 }), "usage.invalid", /Did you mean Width\?/);
    await refuses(
      shapeOf({ Twice: 24 }),
      "usage.invalid",
      /nodes 7 and 8 both have the title "Twice"; set one by its id/,
    );
  });

  it("items of a batch and sweeps may name titles", async () => {
    const events = batch(graph(), [{ Width: 8 }, { Width: "9007199254740993" }], {
      targets: ["1"],
      outputDir: folder(),
    });
    const values: unknown[] = [];
    for await (const event of events) {
      if (event.type === "item-done") values.push(event.values);
      else if (event.type === "item-failed") assert.fail(event.error.message);
    }
    assert.equal(values.length, 2);
  });

  it("finds titles in a graph of many in little time @alone", () => {
    const many = Object.fromEntries(
      Array.from({ length: 20_000 }, (_, i) => [String(i), primitive("PrimitiveInt", i, `${i}.title ${i}`)]),
    );
    const started = performance.now();
    assert.equal(Object.keys(graphSchema(many, { named: true }).properties).length, 20_000);
    assert.ok(performance.now() - started < 5000);
  });

  it("hides such a value where its title is redacted", async () => {
    const { redactMetadata } = await import("#src/render/redact.js");
    const prompt = parseGraphText(JSON.stringify(graph()));
    const { prompt: hidden } = redactMetadata({ prompt, extraPnginfo: undefined }, ["Width"], definitionOf);
    assert.deepEqual((hidden["1"] as { inputs: object }).inputs, { value: "[redacted]" });
    assert.deepEqual((hidden["2"] as { inputs: object }).inputs, { value: 1, width: ["1", 0], height: 8 });
  });
});
