import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { batch, createGenerator, graphSchema, parseGraphText, registry, render } from "latentkit";
import {
  nodesTitled,
  placeholderKeys,
  replacePlaceholders,
  titledPrimitives,
  wholePlaceholder,
} from "#src/render/fill/keys.js";
import { createGraphKeys } from "#src/render/items/graph-keys.js";
import { refuses } from "../../../helpers/errors.js";
import { root, temporaryFolder } from "../../../helpers/folders.js";

/** Placeholders by an expression that takes cubic time: good enough for short texts. */
const DEFINITION = /\{\{\s*([^{}]+?)\s*\}\}/g;
const WHOLE = /^\{\{\s*([^{}]+?)\s*\}\}$/;
const ALPHABET = ["{", "{", "{{", "}", "}", "}}", " ", "a", "b", "\n", "\t", "\u00a0", "\u0085", "\u2003", "\ufeff"];

describe("placeholders", () => {
  it("are those of the definition in random texts", () => {
    const random = createGenerator({ seed: 5n });
    const draws = random.randn([60_000, 10]).data;
    let matches = 0;
    for (let at = 0; at < draws.length; at += 10) {
      const length = 1 + (Math.abs(Math.round(draws[at]! * 7)) % 9);
      const pieces = draws.slice(at + 1, at + 1 + length);
      const text = Array.from(pieces, (draw) => ALPHABET[Math.abs(Math.round(draw * 1e5)) % ALPHABET.length]).join("");
      const keys = [...text.matchAll(DEFINITION)].map(([, key]) => key);
      matches += keys.length;
      assert.deepEqual(placeholderKeys(text), keys, JSON.stringify(text));
      assert.equal(wholePlaceholder(text), WHOLE.exec(text)?.[1], JSON.stringify(text));
      const mark = (all: string, key: string) => `<${all}|${key}>`;
      assert.equal(replacePlaceholders(text, mark), text.replace(DEFINITION, mark), JSON.stringify(text));
    }
    assert.ok(matches > 1000, `${matches} placeholders`);
  });

  it("are read without the blanks around them; the last of blanks alone is a key", () => {
    assert.deepEqual(placeholderKeys("{{a}} {{ b c }} {{{d}}} {{}} {{\t }} {{e}"), ["a", "b c", "d", " "]);
    assert.equal(wholePlaceholder("{{ a }}"), "a");
    for (const text of ["{{a}}{{b}}", "{{}}", "{{}", "x{{a}}", "{{{a}}}"])
      assert.equal(wholePlaceholder(text), undefined);
  });
});

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

  it("hides such a value if its title is redacted", async () => {
    const { redactMetadata } = await import("#src/render/redact.js");
    const prompt = parseGraphText(JSON.stringify(graph()));
    const { prompt: hidden } = redactMetadata({ prompt, extraPnginfo: undefined }, ["Width"], definitionOf);
    assert.deepEqual((hidden["1"] as { inputs: object }).inputs, { value: "[redacted]" });
    assert.deepEqual((hidden["2"] as { inputs: object }).inputs, { value: 1, width: ["1", 0], height: 8 });
  });
});

type Nodes = Record<string, { class_type: string; inputs: Record<string, unknown>; _meta?: object }>;

const textToImage = (change: Nodes = {}): Nodes => ({
  ...(JSON.parse(readFileSync(join(root, "examples/text-to-image.json"), "utf8")) as Nodes),
  ...change,
});
const encoder = (text: unknown) => ({ class_type: "CLIPTextEncode", inputs: { clip: ["1", 1], text } });
const NAMES = ["prompt", "negative", "seed", "steps", "width", "height"];
/** Keys that the common names mean; the reason if a name means none. */
const meant = (graph: Nodes) => {
  const keys = createGraphKeys(graph);
  return NAMES.map((name) => {
    const found = keys.find(name);
    return "reason" in found ? found.reason : keys.canonical(name);
  });
};

describe("common names of inputs", () => {
  const folder = temporaryFolder();

  it("mean the inputs of a text-to-image graph", () => {
    assert.deepEqual(meant(textToImage()), ["2.text", "3.text", "5.seed", "5.steps", "4.width", "4.height"]);
  });

  it("follow conditioning through nodes, and a text to the node that holds it", () => {
    const sampler = textToImage()["5"]!;
    const graph = textToImage({
      "2": encoder(["10", 0]),
      "5": { ...sampler, inputs: { ...sampler.inputs, positive: ["11", 0], negative: ["11", 1] } },
      "10": { class_type: "PrimitiveString", inputs: { value: "a lake" } },
      "11": {
        class_type: "ControlNetApplyAdvanced",
        inputs: { positive: ["12", 0], negative: ["3", 0], strength: 1, start_percent: 0, end_percent: 1 },
      },
      "12": { class_type: "ConditioningSetAreaStrength", inputs: { conditioning: ["2", 0], strength: 1 } },
    });
    assert.deepEqual(meant(graph).slice(0, 2), ["10.value", "3.text"]);
  });

  it("follow numbers to the primitives that hold them, if the graph sets none itself", () => {
    const change = (id: string, links: object) => {
      const node = textToImage()[id]!;
      return { [id]: { ...node, inputs: { ...node.inputs, ...links } } };
    };
    const graph = textToImage({
      ...change("4", { width: ["20", 0], height: ["20", 0] }),
      ...change("5", { seed: ["21", 0], steps: ["23", 0] }),
      "20": primitive("PrimitiveInt", 64),
      "21": primitive("PrimitiveInt", 7),
      "22": { class_type: "RandomNoise", inputs: { noise_seed: ["21", 0] } },
      "23": primitive("PrimitiveInt", ["20", 0]),
    });
    assert.deepEqual(meant(graph).slice(2), [
      "21.value",
      '"steps" names no node\'s input (6.text) and the graph has no placeholder.',
      "20.value",
      "20.value",
    ]);
    assert.equal(meant({ ...graph, ...change("5", { steps: 4 }) })[2], "5.seed");
  });

  it("know the nodes that hold both texts themselves, and unknown classes", () => {
    const pipe = JSON.parse(readFileSync(join(root, "test/graphs/latent-noisy.json"), "utf8")) as Nodes;
    assert.deepEqual(meant(pipe), [
      "1.positive",
      "1.negative",
      "2.seed",
      "2.steps",
      "1.empty_latent_width",
      "1.empty_latent_height",
    ]);
    const unknown: Nodes = {
      "1": { class_type: "Their Sampler", inputs: { noise_seed: 7, positive: ["2", 0], width: "wide" } },
      "2": { class_type: "Their Encoder", inputs: { text: "x" } },
    };
    assert.deepEqual(meant(unknown).slice(0, 3), [
      "2.text",
      '"negative" names no node\'s input (6.text) and the graph has no placeholder.',
      "1.noise_seed",
    ]);
  });

  it("tell apart encoders whose input is called prompt, and take such an input if nothing is encoded", () => {
    const edit = (prompt: string) => ({ class_type: "TextEncodeQwenImageEdit", inputs: { clip: ["1", 1], prompt } });
    assert.deepEqual(meant(textToImage({ "2": edit("a"), "3": edit("b") })).slice(0, 2), ["2.prompt", "3.prompt"]);
    const remote: Nodes = { "7": { class_type: "Their Service", inputs: { prompt: "x", negative_prompt: "y" } } };
    assert.deepEqual(meant(remote).slice(0, 2), ["7.prompt", "7.negative_prompt"]);
  });

  it("mean nothing if several inputs have the name, which the refusal lists", () => {
    const sampler = textToImage()["5"]!;
    const graph = textToImage({
      "3": encoder("b"),
      "8": { class_type: "ConditioningCombine", inputs: { conditioning_1: ["2", 0], conditioning_2: ["9", 0] } },
      "9": encoder("c"),
      "5": { ...sampler, inputs: { ...sampler.inputs, positive: ["8", 0] } },
      "10": { ...sampler, inputs: { ...sampler.inputs, positive: ["8", 0], seed: 8 } },
    });
    const [prompt, negative, seed] = meant(graph);
    assert.equal(prompt, '"prompt" may mean 2.text or 9.text; set one by its id.');
    assert.deepEqual([negative, seed], ["3.text", '"seed" may mean 5.seed or 10.seed; set one by its id.']);
  });

  it("are the prompt if both sides have one text", () => {
    const sampler = textToImage()["5"]!;
    const graph = textToImage({ "5": { ...sampler, inputs: { ...sampler.inputs, negative: ["2", 0] } } });
    const [prompt, negative] = meant(graph);
    assert.equal(prompt, "2.text");
    assert.match(negative!, /names no node's input/);
  });

  it("are suggested for a word that is nearly one, and a key for the name of an input", () => {
    const [keys, unknown] = [createGraphKeys(textToImage()), /^".+" names no node's input .+ no placeholder\. (.+)$/];
    const hint = (key: string) => unknown.exec((keys.find(key) as { reason: string }).reason)?.[1];
    assert.deepEqual(["promt", "Prompt", "step", "cfg", "text"].map(hint), [
      "Did you mean prompt?",
      "Did you mean prompt?",
      "Did you mean steps?",
      "Did you mean 5.cfg?",
      "Did you mean 2.text or 3.text?",
    ]);
    assert.equal(hint("note"), undefined);
    const linked = createGraphKeys(textToImage()).find("latent_image") as { reason: string };
    assert.doesNotMatch(linked.reason, /Did you mean/);
  });

  it("yield to a placeholder and to a title of the same name", () => {
    const marked = createGraphKeys(textToImage({ "3": encoder("{{prompt}}, watermark") }));
    assert.equal(marked.canonical("prompt"), "prompt");
    const titled = createGraphKeys(
      textToImage({ "9": { class_type: "PrimitiveInt", inputs: { value: 3 }, _meta: { title: "seed" } } }),
    );
    assert.deepEqual(titled.find("seed"), [{ nodeId: "9", input: "value", type: "INT", isSeed: false }]);
  });

  it("set the inputs of a render", async () => {
    const graph = textToImage();
    const set = { prompt: "a lake", steps: 1, width: 64, height: 64, seed: 3 };
    const byId = { "2.text": "a lake", "5.steps": 1, "4.width": 64, "4.height": 64, "5.seed": 3 };
    const options = { output: "memory", outputDir: folder() } as const;
    const [named, numbered] = [
      await render(graph, { ...options, set }),
      await render(graph, { ...options, set: byId }),
    ];
    assert.equal(named.status, "success");
    assert.deepEqual(named.files[0]!.bytes, numbered.files[0]!.bytes);
    await refuses(
      render(graph, { ...options, set: { ...set, "2.text": "x" } }),
      "usage.invalid",
      /^set prompt: 2\.text is the same input and is also set\.$/,
    );
  });
});
