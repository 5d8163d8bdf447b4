import assert from "node:assert/strict";
import { changesOf, unmatchedModules, unmatchedWarning } from "#src/host/checkpoint/lora/changes.js";
import type { LoraTarget } from "#src/host/checkpoint/lora/places.js";
import { readLora } from "#src/host/checkpoint/lora/recognise.js";
import { clipPlaces } from "#src/host/checkpoint/text-encoder/model.js";
import { unetPlaces } from "#src/host/checkpoint/unet/lora.js";
import type { WeightFile, WeightMap } from "#src/host/checkpoint/weights/stored.js";
import { readValues } from "#src/host/checkpoint/weights/values.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { goldenNames, isWholeSet, unpackModel } from "../../../../helpers/models/golden.js";
import {
  assertNear,
  loraOf,
  type RawTensors,
  randomTensor,
  valuesOf,
  weightsAfter,
  weightsOf,
} from "../../../../helpers/models/lora.js";
import { f32, weightFile } from "../../../../helpers/models/weight-file.js";

const HIDDEN = 6;
const bigG = (weights: WeightMap): LoraTarget => ({ places: clipPlaces({ name: "g", layout: "openclip" }), weights });

/** Rank 2, no alpha. */
const pair = (name: string, seed: number, rows: number, columns: number): RawTensors => ({
  [`${name}.lora_up.weight`]: randomTensor(seed, [rows, 2]),
  [`${name}.lora_down.weight`]: randomTensor(seed + 1, [2, columns]),
});

/** up @ down in doubles. */
function product(tensors: RawTensors, name: string): number[] {
  const [up, down] = [tensors[`${name}.lora_up.weight`]!, tensors[`${name}.lora_down.weight`]!];
  const [a, b, columns] = [valuesOf(up), valuesOf(down), down.shape[1]!];
  return Array.from({ length: up.shape[0]! * columns }, (_, i) => {
    const [row, column] = [Math.floor(i / columns), i % columns];
    return a[row * 2]! * b[column]! + a[row * 2 + 1]! * b[columns + column]!;
  });
}

describe("changesOf", () => {
  const folder = temporaryFolder();

  it("changes query and value of OpenCLIP, each in its third of one weight", async () => {
    const block = "transformer.resblocks.3.attn";
    const [q, v] = ["q", "v"].map((name) => `lora_te2_text_model_encoder_layers_3_self_attn_${name}_proj`) as [
      string,
      string,
    ];
    const weights = {
      [`${block}.in_proj_weight`]: randomTensor(1, [3 * HIDDEN, HIDDEN], "F16"),
      [`${block}.in_proj_bias`]: randomTensor(2, [3 * HIDDEN]),
    };
    const tensors = {
      ...pair(q, 3, HIDDEN, HIDDEN),
      ...pair(v, 5, HIDDEN, HIDDEN),
      [`${v}.diff_b`]: randomTensor(7, [HIDDEN]),
    };
    const after = await weightsAfter(folder(), weights, [{ tensors, strength: 0.4 }], { target: bigG });
    const sums = [...product(tensors, q), ...new Array(HIDDEN ** 2).fill(0), ...product(tensors, v)];
    const before = valuesOf(weights[`${block}.in_proj_weight`]!);
    assertNear(
      after[`${block}.in_proj_weight`]!,
      before.map((value, i) => value + 0.4 * sums[i]!),
    );
    const ofBias = [...new Array(2 * HIDDEN).fill(0), ...valuesOf(tensors[`${v}.diff_b`]!)];
    const bias = valuesOf(weights[`${block}.in_proj_bias`]!);
    assertNear(
      after[`${block}.in_proj_bias`]!,
      bias.map((value, i) => value + 0.4 * ofBias[i]!),
    );
    const wrong = { ...pair(q, 3, 3 * HIDDEN, HIDDEN) };
    const work = weightsAfter(folder(), weights, [{ tensors: wrong, strength: 1 }], { target: bigG });
    await refuses(work, "model.invalid", /for a weight of \[6, 6\], expected \[6, 2\], received \[18, 2\]/);
  });

  it("changes OpenCLIP's projection from the other side", async () => {
    const name = "lora_te2_text_projection";
    const tensors = pair(name, 1, 4, HIDDEN);
    const weights = { text_projection: randomTensor(8, [HIDDEN, 4]) };
    const after = await weightsAfter(folder(), weights, [{ tensors, strength: 2 }], { target: bigG });
    const sums = product(tensors, name);
    const expected = valuesOf(weights.text_projection).map(
      (value, i) => value + 2 * sums[(i % 4) * HIDDEN + Math.floor(i / 4)]!,
    );
    assertNear(after.text_projection!, expected);
  });

  it("leaves a network alone at strength 0 and if the LoRA has nothing for it", async () => {
    const lora = await loraOf(folder(), pair("lora_unet_conv_in", 1, 4, 5));
    const target: LoraTarget = { places: unetPlaces, weights: weightsOf({ "input_blocks.0.0.weight": [4, 5] }) };
    assert.deepEqual([...changesOf(lora, target, 0.5).keys()], ["input_blocks.0.0.weight"]);
    assert.equal(changesOf(lora, target, 0).size, 0);
    assert.equal(changesOf(lora, bigG(target.weights), 1).size, 0);
  });

  it("refuses a tensor of a form that is not known for a layer of the network, by key", async () => {
    const name = "lora_unet_conv_in";
    const target: LoraTarget = { places: unetPlaces, weights: weightsOf({ "input_blocks.0.0.weight": [4, 5] }) };
    for (const ending of [
      "oft_blocks",
      "oft_diag",
      "a1.weight",
      "b2.weight",
      "set_weight",
      "reshape_weight",
      "lora_B.bias",
      "scalar",
      "lokr_t1",
      "lora_up.weight_zero_point",
      "lora_down.weight.absmax",
      "lora_A.a.b.weight",
      "lora_embedding_A",
    ])
      for (const others of [{}, pair(name, 1, 4, 5)]) {
        const lora = await loraOf(folder(), { ...others, [`${name}.${ending}`]: randomTensor(5, [4]) });
        const sentence = `LoRA "lora.safetensors": its tensor "${name}.${ending}" changes a layer in a way that latentkit does not support.`;
        const { message } = await refuses(() => changesOf(lora, target, 1), "model.unsupported");
        assert.equal(message, sentence);
        assert.equal(changesOf(lora, target, 0).size, 0);
        assert.equal(changesOf(lora, bigG(weightsOf({ text_projection: [5, 4] })), 1).size, 0);
      }
  });

  it("multiplies 8-bit tensors by their factors, and refuses others", async () => {
    const name = "lora_unet_conv_in";
    const weights = { "input_blocks.0.0.weight": randomTensor(1, [2, 2]) };
    const tensors = {
      [`${name}.lora_up.weight`]: { dtype: "F8_E4M3", shape: [2, 1], bytes: Uint8Array.of(0x38, 0x40) },
      [`${name}.lora_up.weight_scale`]: f32([2, 1], [3, 5]),
      [`${name}.lora_down.weight`]: f32([1, 2], [1, 2]),
      [`${name}.lora_down.scale_weight`]: f32([], [0.5]),
      [`${name}.alpha`]: f32([], [4]),
    };
    const after = await weightsAfter(folder(), weights, [{ tensors, strength: 1 }]);
    const before = valuesOf(weights["input_blocks.0.0.weight"]!);
    assertNear(
      after["input_blocks.0.0.weight"]!,
      [6, 12, 20, 40].map((sum, i) => before[i]! + sum),
    );
    const wrong = { ...tensors, [`${name}.lora_up.weight_scale`]: f32([1, 2]) };
    const work = weightsAfter(folder(), weights, [{ tensors: wrong, strength: 1 }]);
    await refuses(work, "model.invalid", /tensor "lora_unet_conv_in\.lora_up\.weight_scale", .* received \[1, 2\]/);
  });

  it("lists what no network has, and warns with the first names", async () => {
    const lora = await loraOf(folder(), {
      ...pair("lora_unet_conv_in", 1, 4, 5),
      ...pair("lora_te2_text_projection", 3, 4, 5),
      "lora_unet_conv_in.diff_b": randomTensor(5, [4]),
      "lora_unet_conv_in.oft_blocks": randomTensor(5, [4]),
      "lora_unet_x.oft_blocks": randomTensor(5, [4]),
      ...pair("lora_te3_text_model_layer", 6, 4, 5),
      ...pair(`lora_unet_${"long_".repeat(1000)}`, 8, 4, 5),
      "x.diff": randomTensor(9, [1]),
    });
    const target: LoraTarget = { places: unetPlaces, weights: weightsOf({ "input_blocks.0.0.weight": [4, 5] }) };
    const ofText = ["lora_te2_text_projection"];
    // of what is refused nothing is said here
    const unknown = ["lora_unet_x.oft_blocks", "lora_unet_conv_in.diff_b"];
    const others = ["lora_te3_text_model_layer", `lora_unet_${"long_".repeat(1000)}`, "x"];
    assert.deepEqual(unmatchedModules(lora, [target]), [...unknown, ...ofText, ...others]);
    const both = [target, bigG(weightsOf({ text_projection: [5, 4] }))];
    const unmatched = unmatchedModules(lora, both);
    assert.deepEqual(unmatched, [...unknown, ...others]);
    assert.equal(unmatchedWarning(lora, []), undefined);
    assert.match(
      unmatchedWarning(lora, unmatched)!,
      /^LoRA "lora\.safetensors": the model has no layers for "lora_unet_x\.oft_blocks", .*"lora_te3_text_model_layer" and 2 more\.$/,
    );
    assert.ok(unmatchedWarning(lora, others)!.length < 600);
    const foreign = await loraOf(folder(), pair("diffusion_model.layers.0.attention.to_q", 6, 4, 5), "foreign");
    assert.equal(
      unmatchedWarning(foreign, unmatchedModules(foreign, both)),
      'LoRA "foreign.safetensors" has no effect: the model has no layers for "diffusion_model.layers.0.attention.to_q".',
    );
  });

  describe("golden LoRAs", () => {
    const SD1 = [
      ["unet", "model.diffusion_model."],
      ["l", "cond_stage_model.transformer.text_model."],
    ] as const;
    const SDXL = [
      ["unet", "model.diffusion_model."],
      ["l", "conditioner.embedders.0.transformer.text_model."],
      ["g", "conditioner.embedders.1.model."],
    ] as const;

    const targetOf = ({ weights }: WeightFile, kind: "unet" | "l" | "g", prefix: string): LoraTarget => {
      const own = new Map(
        [...weights].flatMap(([key, weight]) => (key.startsWith(prefix) ? [[key.slice(prefix.length), weight]] : [])),
      );
      if (kind === "unet") return { places: unetPlaces, weights: own };
      return { places: clipPlaces({ name: kind, layout: kind === "g" ? "openclip" : "hf" }), weights: own };
    };

    // weights that each changes, counted in the files: the 15 pairs for bigG are 5 of q, v and fc1, q and v being one weight
    const loras = [
      ["sd1_kohya", "sd1", SD1, { unet: 195, l: 72 }],
      ["sd1_diffusers", "sd1", SD1, { unet: 48, l: 4 }],
      ["sd1_lycoris", "sd1", SD1, { unet: 5, l: 0 }],
      ["sdxl_kohya", "sdxl", SDXL, { unet: 238, l: 18, g: 10 }],
    ] as const;
    const atHand = loras.filter(([, checkpoint]) => goldenNames("checkpoints").includes(checkpoint));

    it("are all whose checkpoint is at hand", () => assert.equal(atHand.length, isWholeSet ? 4 : 1));

    for (const [name, checkpoint, parts, changed] of atHand)
      it(`${name} fits ${checkpoint}, every layer of it`, async () => {
        const model = await weightFile(unpackModel(`checkpoints/${checkpoint}`, folder()));
        const lora = await readLora(await weightFile(unpackModel(`loras/${name}`, folder())), readValues);
        const targets = parts.map(([kind, prefix]) => targetOf(model, kind, prefix));
        assert.deepEqual(unmatchedModules(lora, targets), []);
        const counts = targets.map((target) => changesOf(lora, target, 1).size);
        assert.deepEqual(Object.fromEntries(parts.map(([kind], i) => [kind, counts[i]])), changed);
      });

    it("sdxl_kohya does not fit sd1_fp8: the first layer that differs is named", async () => {
      const model = await weightFile(unpackModel("checkpoints/sd1_fp8", folder()));
      const lora = await readLora(await weightFile(unpackModel("loras/sdxl_kohya", folder())), readValues);
      const work = () => changesOf(lora, targetOf(model, "unet", "model.diffusion_model."), 1);
      await refuses(work, "model.invalid", /sdxl_kohya.safetensors" does not fit the model: tensor "lora_unet_/);
    });
  });
});
