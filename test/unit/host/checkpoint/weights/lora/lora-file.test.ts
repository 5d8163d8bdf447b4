import assert from "node:assert/strict";
import { join } from "node:path";
import { readLora } from "#src/host/checkpoint/weights/lora/lora-file.js";
import { openWeightFile } from "#src/host/checkpoint/weights/stored.js";
import { refuses } from "../../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../../helpers/folders.js";
import { loraOf, readValues } from "../../../../../helpers/models/lora.js";
import { f32, words, writeWeights } from "../../../../../helpers/models/weight-file.js";

describe("readLora", () => {
  const folder = temporaryFolder();

  it("sorts tensors by layer and reads no values but the alphas", async () => {
    const path = writeWeights(join(folder(), "a.safetensors"), {
      "a.lora_up.weight": f32([2, 1]),
      "b.alpha": words("F16", [], [0x3800]),
      "a.lora_down.weight": f32([1, 2]),
      "a.alpha": f32([1], [4]),
      "b.diff": f32([1]),
      "c.alpha": words("BF16", [1, 1], [0xc000]),
      "d.diff": f32([1]),
      "d.oft_blocks": f32([1]),
    });
    const read: string[] = [];
    const file = await openWeightFile(path);
    const lora = await readLora(file, (weight) => {
      read.push([...file.weights].find(([, stored]) => stored === weight)![0]);
      return readValues(weight);
    });
    assert.equal(lora.path, file.path);
    assert.deepEqual(read.sort(), ["a.alpha", "b.alpha", "c.alpha"]);

    const modules = [...lora.modules].map(([name, { tensors, alpha }]) => [name, [...tensors.keys()], alpha]);
    assert.deepEqual(modules, [
      ["a", ["up", "down", "alpha"], 4],
      ["b", ["alpha", "diff"], 0.5],
      ["c", ["alpha"], -2],
      ["d", ["diff"], undefined],
    ]);
    assert.deepEqual(lora.modules.get("a")!.tensors.get("up"), {
      key: "a.lora_up.weight",
      weight: file.weights.get("a.lora_up.weight"),
    });
    assert.deepEqual(lora.unknown, ["d.oft_blocks"]);
  });

  it("keeps bundled embeddings apart, by name", async () => {
    const { embeddings, modules, unknown } = await loraOf(folder(), {
      "bundle_emb.my.style.string_to_param.*": f32([1, 4]),
      "bundle_emb.two.clip_l": f32([1, 4]),
      "bundle_emb.two.clip_g": f32([1, 6]),
      "bundle_emb.": f32([1]),
      "bundle_emb.nothing": f32([1]),
      "__proto__.diff": f32([1]),
    });
    const found = [...embeddings].map(([name, tensors]) => [
      name,
      [...tensors].map(([key, { shape }]) => [key, shape]),
    ]);
    assert.deepEqual(found, [
      ["my.style", [["string_to_param.*", [1, 4]]]],
      [
        "two",
        [
          ["clip_l", [1, 4]],
          ["clip_g", [1, 6]],
        ],
      ],
    ]);
    assert.deepEqual([...modules.keys()], ["__proto__"]);
    assert.deepEqual(unknown, ["bundle_emb.", "bundle_emb.nothing"]);
  });

  it("refuses alphas that are no finite number, by key", async () => {
    for (const [alpha, pattern] of [
      [f32([2]), /"x.alpha": expected one number, received 2\./],
      [f32([0]), /expected one number, received 0\./],
      [f32([], [Number.NaN]), /"x.alpha": expected a finite number, received NaN\./],
      [words("F16", [], [0x7c00]), /expected a finite number, received Infinity\./],
    ] as const)
      await refuses(loraOf(folder(), { "x.alpha": alpha }), "model.invalid", /LoRA ".*lora\.safetensors"/, pattern);
  });
});
