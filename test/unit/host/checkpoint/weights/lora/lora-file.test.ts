import assert from "node:assert/strict";
import { join } from "node:path";
import { readLora } from "#src/host/checkpoint/weights/lora/lora-file.js";
import { readValues } from "#src/host/checkpoint/weights/values.js";
import { refuses } from "../../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../../helpers/folders.js";
import { loraOf } from "../../../../../helpers/models/lora.js";
import { f32, type RawTensor, weightFile, words, writeWeights } from "../../../../../helpers/models/weight-file.js";

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
    const file = await weightFile(path);
    const lora = await readLora(file, (weight) => {
      read.push([...file.weights].find(([, stored]) => stored === weight)![0]);
      return readValues(weight);
    });
    assert.equal(lora.name, "a.safetensors");
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

  it("reads an alpha of any type of numbers", async () => {
    const whole = (dtype: string, array: ArrayBufferView): RawTensor => ({
      dtype,
      shape: [],
      bytes: new Uint8Array(array.buffer),
    });
    for (const alpha of [
      whole("I64", BigInt64Array.of(16n)),
      whole("I32", Int32Array.of(16)),
      whole("I16", Int16Array.of(16)),
      whole("U8", Uint8Array.of(16)),
      whole("F64", Float64Array.of(16)),
      whole("F8_E4M3", Uint8Array.of(0x58)),
      words("BF16", [], [0x4180]),
    ]) {
      const { modules } = await loraOf(folder(), { "x.alpha": alpha });
      assert.equal(modules.get("x")!.alpha, 16, alpha.dtype);
    }
  });

  it("takes an alpha of the metadata where there is no tensor of it", async () => {
    const tensors = {
      "unet.a.lora_B.weight": f32([2, 1]),
      "unet.a.lora_A.weight": f32([1, 2]),
      "unet.b.lora_B.weight": f32([2, 1]),
      "unet.b.alpha": f32([], [3]),
    };
    const path = writeWeights(join(folder(), "m.safetensors"), tensors, { "unet.lora_alpha": "2", "unet.r": "4" });
    const { modules, note } = await readLora(await weightFile(path), readValues);
    assert.deepEqual([modules.get("unet.a")!.alpha, modules.get("unet.b")!.alpha, note], [2, 3, undefined]);
    const kohya = { ss_network_alpha: "4", ss_network_dim: "8" };
    const old = await weightFile(writeWeights(join(folder(), "k.safetensors"), tensors, kohya));
    assert.match((await readLora(old, readValues)).note!, /ss_network_alpha "4"/);
    const whole = await weightFile(writeWeights(join(folder(), "w.safetensors"), { "a.diff": f32([1]) }, kohya));
    assert.equal((await readLora(whole, readValues)).note, undefined);
  });

  it("takes off what stands before all keys", async () => {
    for (const wrapper of ["module.", "state_dict.model.", ""]) {
      const { modules } = await loraOf(folder(), {
        [`${wrapper}lora_unet_conv_in.lora_up.weight`]: f32([2, 1]),
        [`${wrapper}lora_unet_conv_in.lora_down.weight`]: f32([1, 2]),
      });
      assert.deepEqual([...modules.keys()], ["lora_unet_conv_in"]);
    }
    for (const name of ["base_model.model.conv_in", "model.diffusion_model.out.2", "transformer.x"])
      assert.deepEqual([...(await loraOf(folder(), { [`${name}.diff`]: f32([1]) })).modules.keys()], [name]);
  });

  it("takes one adapter of PEFT of any name, and refuses two", async () => {
    const layer = (module: string, adapter: string) => ({
      [`unet.${module}.lora_A.${adapter}.weight`]: f32([1, 2]),
      [`unet.${module}.lora_B.${adapter}.weight`]: f32([2, 1]),
    });
    const { modules } = await loraOf(folder(), { ...layer("a", "adapter_0"), ...layer("b", "adapter_0") });
    assert.deepEqual([...modules.keys()], ["unet.a", "unet.b"]);
    const work = loraOf(folder(), { ...layer("a", "cat"), ...layer("b", "dog") });
    await refuses(work, "model.unsupported", /expected one adapter, received "cat" and "dog": /);
  });

  it("names a pattern of the metadata that fits none of its layers", async () => {
    const metadata = { lora_alpha: "2", alpha_pattern: JSON.stringify({ "a.to_q": 4 }) };
    const noteOf = async (module: string): Promise<string | undefined> => {
      const tensors = { [`${module}.lora_B.weight`]: f32([2, 1]), [`${module}.lora_A.weight`]: f32([1, 2]) };
      const path = writeWeights(join(folder(), "p.safetensors"), tensors, metadata);
      return (await readLora(await weightFile(path), readValues)).note;
    };
    assert.match((await noteOf("unet.a.to_k"))!, /alpha_pattern of its metadata has no effect for "a\.to_q"/);
    assert.equal(await noteOf("unet.a.to_q"), undefined);
  });

  it("refuses two tensors of one role for a layer, by key", async () => {
    const work = loraOf(folder(), { "x.lora_up.weight": f32([2, 1]), "x.lora_B.weight": f32([2, 1]) });
    const sentence = /"x\.lora_up\.weight": expected one tensor up, received "x\.lora_B\.weight" too\.$/;
    await refuses(work, "model.invalid", /^LoRA "lora\.safetensors": /, sentence);
  });

  it("refuses alphas that are no finite number, by key", async () => {
    for (const [alpha, pattern] of [
      [f32([2]), /"x.alpha": expected one number, received 2\./],
      [f32([0]), /expected one number, received 0\./],
      [f32([], [Number.NaN]), /"x.alpha": expected a finite number, received NaN\./],
      [words("F16", [], [0x7c00]), /expected a finite number, received Infinity\./],
    ] as const)
      await refuses(loraOf(folder(), { "x.alpha": alpha }), "model.invalid", /^LoRA "lora\.safetensors": /, pattern);
  });
});
