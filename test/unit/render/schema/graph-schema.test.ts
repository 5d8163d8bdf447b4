import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createRegistry, defineNode, graphSchema, int, parseGraphText, registry, text } from "latentkit";
import { exactSchema } from "#src/render/schema/graph-schema.js";
import { refuses } from "../../../helpers/errors.js";
import { root } from "../../../helpers/folders.js";

const require = createRequire(createRequire(import.meta.url).resolve("@seriousme/openapi-schema-validator"));
const { Ajv2020 } = require("ajv/dist/2020.js") as typeof import("ajv/dist/2020.js");

const SEED = "18446744073709551615";
const GRAPH = `{
  "20": { "class_type": "PrimitiveString", "inputs": { "value": "a fox" }, "_meta": { "title": "Prompt" } },
  "3": {
    "class_type": "KSampler",
    "inputs": {
      "seed": ${SEED}, "steps": "{{steps}}", "cfg": 7.0, "sampler_name": "euler", "scheduler": "{{scheduler}}",
      "denoise": 1, "model": ["4", 0], "positive": ["6", 0], "negative": ["7", 0], "latent_image": ["5", 0]
    }
  },
  "4": { "class_type": "CheckpointLoaderSimple", "inputs": { "ckpt_name": "preview-sd15.safetensors" } },
  "5": { "class_type": "EmptyLatentImage", "inputs": { "width": 512, "height": "{{side}}", "batch_size": 1 } },
  "6": { "class_type": "CLIPTextEncode", "inputs": { "text": ["20", 0], "clip": ["4", 1] } },
  "7": {
    "class_type": "CLIPTextEncode",
    "inputs": { "text": "no {{colour}}, {{steps}}", "clip": ["4", 1] },
    "_meta": { "title": "Not in it" }
  },
  "8": { "class_type": "Odd", "inputs": { "size": 3, "shape": { "a": 1 }, "name": "x" }, "_meta": { "title": "Odd one" } }
}`;

describe("graphSchema", () => {
  const schema = graphSchema(GRAPH);
  const { properties } = schema;

  it("lists placeholders, titled primitives and other inputs, in that order", () => {
    assert.deepEqual(Object.keys(properties), [
      "steps",
      "scheduler",
      "side",
      "colour",
      "Prompt",
      "3.seed",
      "3.cfg",
      "3.sampler_name",
      "3.denoise",
      "4.ckpt_name",
      "5.width",
      "5.batch_size",
      "8.size",
      "8.name",
    ]);
    assert.deepEqual(schema.required, ["steps", "scheduler", "side", "colour"]);
    assert.deepEqual(Object.keys(graphSchema(GRAPH, { named: true }).properties), [
      "steps",
      "scheduler",
      "side",
      "colour",
      "Prompt",
    ]);
  });

  it("gives type, bounds, choices and default of an input", () => {
    const { title, description, ...steps } = properties.steps!;
    assert.deepEqual(steps, { type: "integer", minimum: 1, maximum: 10000 });
    assert.equal(title, "steps");
    assert.equal(description, 'Input "steps" of node 3 (KSampler).');
    assert.equal(properties.colour!.type, "string");
    assert.deepEqual(properties.scheduler!.enum, graphSchemaEnum("scheduler"));
    assert.deepEqual(properties.Prompt, {
      title: "Prompt",
      description: 'Input "value" of node 20 (PrimitiveString).',
      type: "string",
      default: "a fox",
    });
    assert.equal(properties["3.cfg"]!.default, 7);
    assert.equal(properties["5.width"]!.multipleOf, 8);
    assert.equal(properties["5.width"]!.title, "Empty Latent Image: width");
    assert.equal(properties["8.size"]!.title, "Odd one: size");
    assert.deepEqual(properties["8.size"]!.type, ["string", "number", "boolean"]);
    assert.ok(properties["4.ckpt_name"]!.enum!.includes("preview-sdxl.safetensors"));
  });

  it("keeps every digit of seeds when it prints, and leaves out a default that a number loses", () => {
    assert.equal(Object.hasOwn(properties["3.seed"]!, "default"), false);
    assert.equal(properties["3.seed"]!.maximum, 2 ** 64);
    const exact = exactSchema(GRAPH).properties["3.seed"]!;
    assert.deepEqual([exact.default, exact.maximum], [BigInt(SEED), BigInt(SEED)]);
  });

  it("narrows a placeholder to what all its inputs take", () => {
    const node = (key: string, input: ReturnType<typeof int>) =>
      defineNode({ key, inputs: { n: input }, outputs: { INT: "INT" }, run: ({ n }) => ({ INT: n }) });
    const nodes = createRegistry(
      [
        node("A", int({ min: 0, max: 100, step: 4 })),
        node("B", int({ min: 8, max: 200, step: 6 })),
        defineNode({ key: "C", inputs: { t: text({ tooltip: "Any text." }) }, outputs: {}, run: () => ({}) }),
      ],
      registry,
    );
    const graph = {
      0: { class_type: "C", inputs: { t: "{{n}}" } },
      1: { class_type: "A", inputs: { n: "{{n}}" } },
      2: { class_type: "B", inputs: { n: "{{n}}" } },
    };
    const { n } = graphSchema(graph, { registry: nodes }).properties;
    assert.deepEqual(n, {
      title: "n",
      description: "Any text.",
      type: "integer",
      minimum: 8,
      maximum: 100,
      multipleOf: 4,
    });
  });

  it("is the same each time, valid JSON Schema, and met by the graph's own values", () => {
    const graphs = ["test/graphs", "test/graphs/sampling", "examples"].flatMap((folder) =>
      readdirSync(join(root, folder))
        .filter((name) => name.endsWith(".json"))
        .map((name) => join(root, folder, name)),
    );
    assert.ok(graphs.length > 20);
    for (const graph of [...graphs, GRAPH]) {
      const schema = graphSchema(graph);
      assert.deepEqual(JSON.parse(JSON.stringify(schema)), graphSchema(graph));
      const check = new Ajv2020({ strict: true, strictTypes: false }).compile(schema);
      const values = Object.entries(schema.properties).map(([key, { default: own, type, enum: choices, minimum }]) => {
        const other = choices?.[0] ?? minimum ?? (type === "boolean" ? true : "a fox");
        return [key, schema.required.includes(key) ? other : own] as const;
      });
      const given = Object.fromEntries(values.filter(([, value]) => value !== undefined));
      assert.ok(check(given), `${graph}: ${JSON.stringify(check.errors)}`);
    }
  });

  it("refuses anything but a graph, and unknown options", async () => {
    await refuses(() => graphSchema("missing.json"), "file.not-found", /missing\.json/);
    await refuses(() => graphSchema({}, { name: true } as object), "usage.invalid", /Did you mean named\?/);
    assert.deepEqual(graphSchema(parseGraphText(GRAPH)), schema);
  });
});

function graphSchemaEnum(input: string) {
  const { choices } = registry.get("KSampler")!.inputs[input]!;
  return choices;
}
