import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseGraph } from "#src/graph/parse.js";
import { rolesOf } from "#src/service/web/shown-graph.js";
import { root } from "../../../helpers/folders.js";

const roles = (graph: object) =>
  Object.fromEntries(rolesOf(parseGraph(graph)).map(({ nodeId, input, role }) => [`${nodeId}.${input}`, role]));
const node = (class_type: string, inputs: object) => ({ class_type, inputs });

describe("roles of inputs", () => {
  it("says what prompts, settings and sizes of a text to image feed, prompts first", () => {
    const graph = JSON.parse(readFileSync(join(root, "examples/text-to-image.json"), "utf8"));
    const found = rolesOf(parseGraph(graph)).map(({ nodeId, input, role }) => `${nodeId}.${input} ${role}`);
    assert.deepEqual(found.slice(0, 4), [
      "2.text Positive prompt",
      "3.text Negative prompt",
      "5.seed Seed",
      "5.steps Steps",
    ]);
    assert.ok(found.includes("4.width Width") && found.includes("4.height Height"));
    assert.ok(found.includes("1.ckpt_name Model"));
  });

  it("follows the side of a node that passes both on, and texts through primitives", () => {
    const graph = {
      1: node("PrimitiveStringMultiline", { value: "a lake" }),
      2: node("CLIPTextEncode", { text: ["1", 0], clip: ["9", 1] }),
      3: node("CLIPTextEncode", { text: "blurry", clip: ["9", 1] }),
      4: node("ControlNetApplyAdvanced", { positive: ["2", 0], negative: ["3", 0], strength: 1 }),
      5: node("KSampler", { positive: ["4", 0], negative: ["4", 1], seed: 7, steps: 20 }),
    };
    assert.deepEqual(roles(graph), {
      "1.value": "Positive prompt",
      "3.text": "Negative prompt",
      "5.seed": "Seed",
      "5.steps": "Steps",
    });
  });

  it("a text of both sides is a prompt; a setting of two nodes has no role, nor has a width that resizes", () => {
    const graph = {
      1: node("CLIPTextEncode", { text: "a lake" }),
      2: node("KSampler", { positive: ["1", 0], negative: ["1", 0], seed: 1, cfg: 7 }),
      3: node("KSampler", { positive: ["1", 0], negative: ["1", 0], seed: 2 }),
      4: node("ImageScale", { width: 64, height: 64 }),
    };
    assert.deepEqual(roles(graph), { "1.text": "Prompt", "2.cfg": "CFG" });
  });

  it("finds settings that primitives hold, also one of two samplers, but none with two uses", () => {
    const graph = {
      1: node("PrimitiveInt", { value: 7 }),
      2: node("PrimitiveInt", { value: 512 }),
      3: node("PrimitiveInt", { value: ["1", 0] }),
      4: node("EmptyLatentImage", { width: ["2", 0], height: ["2", 0], batch_size: 1 }),
      5: node("KSampler", { seed: ["1", 0], steps: ["3", 0] }),
      6: node("KSampler", { seed: ["1", 0], cfg: ["9", 0] }),
    };
    assert.deepEqual(roles(graph), { "1.value": "Seed" });
  });

  it("a circle and links to nowhere end", () => {
    const graph = {
      1: node("A", { positive: ["2", 0], text: 5 }),
      2: node("B", { conditioning: ["1", 0], other: ["toString", 0] }),
    };
    assert.deepEqual(roles(graph), {});
  });
});
