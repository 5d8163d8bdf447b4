import assert from "node:assert/strict";
import { join } from "node:path";
import { fluxPlaces } from "#src/host/checkpoint/flux/lora.js";
import { changesOf } from "#src/host/checkpoint/lora/changes.js";
import type { LoraTarget } from "#src/host/checkpoint/lora/places.js";
import {
  controlInputs,
  readControlKey,
  readKey,
  readLora,
  recogniseLora,
  takingInputs,
} from "#src/host/checkpoint/lora/recognise.js";
import type { WeightMap } from "#src/host/checkpoint/weights/stored.js";
import { readValues } from "#src/host/checkpoint/weights/values.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import {
  assertNear,
  loraOf,
  randomTensor,
  valuesOf,
  weightsAfter,
  weightsOf,
} from "../../../../helpers/models/lora.js";
import { f32, type RawTensor, weightFile, words, writeWeights } from "../../../../helpers/models/weight-file.js";

describe("recogniseLora", () => {
  const folder = temporaryFolder();

  it("refuses a file of another form alone by the name of the form", async () => {
    for (const [keys, received] of [
      [["x.set_weight"], "an adapter of whole weights (set_weight)"],
      [["x.weight", "x.on_input"], "an adapter of IA3"],
      [["x.ia3_l"], "an adapter of IA3"],
      [["x.lora_A.a.b.c"], 'one of a form that latentkit does not support, with the key "x.lora_A.a.b.c"'],
    ] as const) {
      const tensors = Object.fromEntries(keys.map((key) => [key, f32([1])]));
      const file = await weightFile(writeWeights(join(folder(), "a.safetensors"), tensors));
      const { message } = await refuses(recogniseLora(file, readValues), "model.unsupported");
      assert.equal(message, `Model "a.safetensors": expected a LoRA, received ${received}.`);
    }
  });
});

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

  it("takes an alpha of the metadata if there is no tensor of it", async () => {
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

  it("refuses alphas that are not finite numbers, by key", async () => {
    for (const [alpha, pattern] of [
      [f32([2]), /"x.alpha": expected one number, received 2\./],
      [f32([0]), /expected one number, received 0\./],
      [f32([], [Number.NaN]), /"x.alpha": expected a finite number, received NaN\./],
      [words("F16", [], [0x7c00]), /expected a finite number, received Infinity\./],
    ] as const)
      await refuses(loraOf(folder(), { "x.alpha": alpha }), "model.invalid", /^LoRA "lora\.safetensors": /, pattern);
  });
});

/** Layer and role by key. */
const KEYS: Record<string, [module: string, role: string]> = {
  "lora_unet_conv_in.lora_up.weight": ["lora_unet_conv_in", "up"],
  "lora_unet_conv_in.lora_down.weight": ["lora_unet_conv_in", "down"],
  "lora_unet_conv_in.lora_mid.weight": ["lora_unet_conv_in", "mid"],
  "lora_unet_conv_in.alpha": ["lora_unet_conv_in", "alpha"],
  "unet.a.attn1.processor.to_q_lora.up.weight": ["unet.a.attn1.processor.to_q", "up"],
  "unet.a.attn1.processor.to_out_lora.down.weight": ["unet.a.attn1.processor.to_out", "down"],
  "double_blocks.0.processor.qkv_lora1.up.weight": ["double_blocks.0.processor.qkv1", "up"],
  "double_blocks.0.processor.proj_lora2.down.weight": ["double_blocks.0.processor.proj2", "down"],
  "single_blocks.0.processor.qkv_lora.down.weight": ["single_blocks.0.processor.qkv", "down"],
  "text_encoder.a.q_proj.lora_linear_layer.up.weight": ["text_encoder.a.q_proj", "up"],
  "text_encoder.a.q_proj.lora_linear_layer.down.weight": ["text_encoder.a.q_proj", "down"],
  "unet.a.to_q.lora_A.weight": ["unet.a.to_q", "down"],
  "unet.a.to_q.lora_B.weight": ["unet.a.to_q", "up"],
  "unet.a.to_q.lora_A": ["unet.a.to_q", "down"],
  "unet.a.to_q.lora_B": ["unet.a.to_q", "up"],
  "unet.a.to_q.lora.up.weight": ["unet.a.to_q", "up"],
  "unet.a.to_q.lora.down.weight": ["unet.a.to_q", "down"],
  "transformer.base_model.model.a.to_q.lora.up.weight": ["transformer.a.to_q", "up"],
  "text_encoder_2.base_model.model.a.q_proj.lora_A.weight": ["text_encoder_2.a.q_proj", "down"],
  "unet.a.to_q.lora_magnitude_vector": ["unet.a.to_q", "dora_scale"],
  "x.dora_scale": ["x", "dora_scale"],
  "x.hada_w1_a": ["x", "hada_w1_a"],
  "x.hada_t2": ["x", "hada_t2"],
  "x.lokr_w1": ["x", "lokr_w1"],
  "x.lokr_w2_b": ["x", "lokr_w2_b"],
  "x.lokr_t2": ["x", "lokr_t2"],
  "x.diff": ["x", "diff"],
  "x.diff_b": ["x", "diff_b"],
  "x.w_norm": ["x", "w_norm"],
  "x.b_norm": ["x", "b_norm"],
};

describe("keys of LoRA files", () => {
  it("end with what the tensor is", () => {
    for (const [key, [module, role]] of Object.entries(KEYS)) assert.deepEqual(readKey(key), { module, role }, key);
  });

  it("may name PEFT's adapter", () => {
    const module = "base_model.model.a.to_q";
    assert.deepEqual(readKey(`${module}.lora_A.default.weight`), { module, role: "down", adapter: "default" });
    assert.deepEqual(readKey(`${module}.lora_B.adapter_0.weight`), { module, role: "up", adapter: "adapter_0" });
    const norms = readKey(`${module}.lora_magnitude_vector.cat.weight`);
    assert.deepEqual(norms, { module, role: "dora_scale", adapter: "cat" });
  });

  it("of no known form are none", () => {
    for (const key of [
      "",
      "alpha",
      ".alpha",
      "x.weight",
      "x.oft_blocks",
      "x.lora_up",
      "x.alpha.",
      "x.lokr_t1",
      "x.processor.qkv_lora3.up.weight",
      "__proto__",
    ])
      assert.equal(readKey(key), undefined, key);
  });
});

const NORM = "double_blocks.0.img_attn.norm.key_norm.scale";
const DOWN = "img_in.lora_A.weight";
const flux = (weights: WeightMap): LoraTarget => ({ places: fluxPlaces, weights });

describe("controlInputs", () => {
  it("are the columns of a Control LoRA, and nothing of other LoRAs", () => {
    assert.equal(controlInputs(weightsOf({ [DOWN]: [2, 128], [NORM]: [32] })), 128);
    assert.equal(controlInputs(weightsOf({ [DOWN]: [2, 128] })), undefined);
    assert.equal(controlInputs(weightsOf({ [NORM]: [32] })), undefined);
  });
});

describe("a Control LoRA", () => {
  const folder = temporaryFolder();

  it("replaces norms at any strength, and adds biases at its own", async () => {
    const weights = {
      [NORM]: randomTensor(1, [4]),
      "txt_in.weight": randomTensor(2, [3, 2]),
      "txt_in.bias": randomTensor(3, [3]),
    };
    const tensors = {
      [NORM]: randomTensor(4, [4], "BF16"),
      [DOWN]: randomTensor(5, [1, 8]),
      "txt_in.lora_B.bias": randomTensor(6, [3]),
    };
    for (const strength of [0.25, -1]) {
      const after = await weightsAfter(folder(), weights, [{ tensors, strength }], { target: flux });
      assert.deepEqual([...after[NORM]!.data], valuesOf(tensors[NORM]!));
      assert.deepEqual([...after["txt_in.weight"]!.data], valuesOf(weights["txt_in.weight"]));
      const added = valuesOf(tensors["txt_in.lora_B.bias"]);
      assertNear(
        after["txt_in.bias"]!,
        valuesOf(weights["txt_in.bias"]).map((value, i) => value + strength * added[i]!),
      );
    }
  });

  it("is refused if a norm or the inputs do not fit", async () => {
    const tensors = {
      [NORM]: randomTensor(4, [5]),
      [DOWN]: randomTensor(5, [1, 8]),
      "img_in.lora_B.weight": randomTensor(6, [3, 1]),
    };
    const lora = await loraOf(folder(), tensors);
    const norms = flux(weightsOf({ [NORM]: [4] }));
    await refuses(
      () => changesOf(lora, norms, 1),
      "model.invalid",
      /key_norm\.scale".*expected \[4, 1\], received \[5\]/,
    );
    const narrow = weightsOf({ "img_in.weight": [3, 4] });
    await refuses(() => changesOf(lora, flux(narrow), 1), "model.invalid", /img_in\.lora_A\.weight".*\[1, 4\]/);
    assert.equal(changesOf(lora, flux(takingInputs(narrow, 8)), 1).size, 1);
  });
});

describe("readControlKey", () => {
  it("reads nothing but biases of products and norms of heads", () => {
    assert.deepEqual(readControlKey("single_blocks.3.norm.query_norm.scale"), {
      module: "single_blocks.3.norm.query_norm",
      role: "replacement",
    });
    for (const key of ["a.lora_B.weight", "a.norm.scale", ".norm.key_norm.weight"])
      assert.equal(readControlKey(key), undefined);
  });
});

describe("takingInputs", () => {
  it("widens the first layer alone, and narrows none", () => {
    const weights = weightsOf({ "img_in.weight": [3, 4], "txt_in.weight": [3, 4] });
    const wide = takingInputs(weights, 8);
    assert.deepEqual(wide.get("img_in.weight")!.shape, [3, 8]);
    assert.equal(wide.get("img_in.weight")!.storedColumns, 4);
    assert.equal(takingInputs(wide, 10).get("img_in.weight")!.storedColumns, 4);
    assert.equal(wide.get("txt_in.weight"), weights.get("txt_in.weight"));
    assert.equal(takingInputs(weights, 4), weights);
    assert.equal(takingInputs(weights, 2), weights);
  });
});
