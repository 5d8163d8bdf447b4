import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Conditioning, Control, ControlNet, Model } from "latentkit";
import { randn, Tensor } from "latentkit";
import { type CheckpointHost, createCheckpointHost } from "latentkit/models";
import { familyInWords } from "#src/host/checkpoint/reports/list-models.js";
import { CONTROL_LORA_MARK } from "#src/host/checkpoint/unet/control-lora.js";
import { recogniseControl } from "#src/host/checkpoint/unet/controls.js";
import { readSafetensors, toTensor } from "#src/io/safetensors.js";
import { refuses } from "../../../../helpers/errors.js";
import { suiteFolder, temporaryFolder } from "../../../../helpers/folders.js";
import { headerOf, type Shapes } from "../../../../helpers/models/full-size.js";
import { adapterFile, unpackAdapters } from "../../../../helpers/models/golden-adapters.js";
import { layerError } from "../../../../helpers/models/layers.js";
import { someContext, tinyHost, tinyModels } from "../../../../helpers/models/tiny-host.js";
import { f32, weightFile, writeWeights } from "../../../../helpers/models/weight-file.js";

const CONTROL_LORA: Shapes = {
  lora_controlnet: [0],
  "zero_convs.0.0.weight": [8, 8, 1, 1],
  "input_hint_block.0.weight": [8, 3, 3, 3],
  "middle_block_out.0.weight": [8, 8, 1, 1],
};

describe("recogniseControl", () => {
  const folder = temporaryFolder();

  it("tells ControlNets, Control-LoRAs and T2I-Adapters apart", async () => {
    const kindOf = async (name: string) =>
      recogniseControl(await adapterFile(`controlnet/${name}.safetensors`, folder()));
    const union = await kindOf("union_sdxl");
    assert.deepEqual([union.kind, union.kind === "net" && union.part.config.union?.types], ["net", 6]);
    assert.equal((await kindOf("control-lora-canny-rank4")).kind, "lora");
    assert.equal((await kindOf("t2iadapter_canny_sd15")).kind, "t2i");
    assert.equal((await kindOf("t2iadapter_color_sd14v1")).kind, "t2i");
  });

  it("refuses damaged Control-LoRAs, and those with further layers", async () => {
    const { "zero_convs.0.0.weight": _, ...without } = CONTROL_LORA;
    const cases: [Shapes, string, RegExp][] = [
      [without, "model.invalid", /"zero_convs\.0\.0\.weight" of 4 sides, received none/],
      [{ ...CONTROL_LORA, "output_blocks.0.up": [8, 4] }, "model.unsupported", /unknown weight "output_blocks\.0\.up"/],
      [
        { ...CONTROL_LORA, "time_embed.0.up": [8, 4] },
        "model.invalid",
        /"time_embed\.0\.up" and the "down" beside it of one rank/,
      ],
      [
        { ...CONTROL_LORA, "time_embed.0.up": [8, 4], "time_embed.0.down": [3, 8] },
        "model.invalid",
        /"time_embed\.0\.up" and the "down" beside it of one rank, received /,
      ],
      [{ "lllite_unet_x.down.0.weight": [1] }, "model.unsupported", /a ControlNet-LLLite\.$/],
    ];
    for (const [each, code, pattern] of cases) await refuses(() => recogniseControl(headerOf(each)), code, pattern);
    const header = headerOf(CONTROL_LORA);
    const key = "zero_convs.0.0.weight";
    const weights = new Map(header.weights).set(key, { ...header.weights.get(key)!, dtype: "I64" });
    await refuses(() => recogniseControl({ ...header, weights }), "model.invalid", /of floats, received I64/);
  });
});

describe("controls of SDXL", () => {
  const folder = suiteFolder();
  let host: CheckpointHost;
  let model: Model;
  before(async () => {
    unpackAdapters(folder());
    host = createCheckpointHost({ models: folder() });
    ({ model } = await host.loadCheckpoint("sdxl.safetensors"));
  });
  after(() => host.close());

  const x = randn([1, 4, 8, 8], { seed: 1 });
  const hint = Tensor.full([1, 64, 64, 3], 0.5);
  const net = (name: string) => host.loadFile!("controlnet", `${name}.safetensors`);
  const predicted = (net: ControlNet, changes: Partial<Control> = {}) => {
    const control = { net, hint, strength: 1, start: 0, end: 1, ...changes };
    const options = { pooled_output: randn([1, 128], { seed: 2 }), control };
    return model.predict!(x, 2, [[randn([1, 77, 192], { seed: 3 }), options]] as Conditioning);
  };

  it("give a net for several kinds of pictures the one that is set, and refuse one that it lacks", async () => {
    const union = await net("union_sdxl");
    const [auto, canny] = [union.ofType!(-1), union.ofType!(3)];
    assert.ok(layerError(await predicted(auto), await predicted(union)) < 1e-6);
    assert.ok(layerError(await predicted(canny), await predicted(auto)) > 1e-5);
    const sentence = /^ControlNet of union_sdxl\.safetensors takes 6 kinds of pictures, not the one numbered 7\.$/;
    await refuses(() => union.ofType!(7), "value.invalid", sentence);
    const lora = await net("control-lora-canny-rank4");
    assert.equal(lora.ofType!(3), lora);
  });

  it("count between start and end, by their strength", async () => {
    const lora = await net("control-lora-canny-rank4");
    const plain = await predicted(lora, { strength: 0 });
    assert.ok(layerError(await predicted(lora), plain) > 1e-4);
    assert.ok(layerError(await predicted(lora, { start: 0.9 }), plain) < 1e-6);
  });

  it("refuse those of Stable Diffusion 1, naming both", async () => {
    const canny = await net("t2iadapter_canny_sd15");
    const sentence =
      /^T2I-Adapter of t2iadapter_canny_sd15\.safetensors is for a different model family than UNet of sdxl/;
    await refuses(predicted(canny), "value.invalid", sentence);
  });
});

describe("a Control-LoRA of Stable Diffusion 1", () => {
  const folder = suiteFolder();
  const host = tinyHost(() => [folder()]);
  before(() => {
    const tensorsOf = (name: string) => readSafetensors(readFileSync(join(tinyModels(), name))).tensors;
    const net = Object.fromEntries(
      [...tensorsOf("controlnet/tiny-sd1-control.safetensors")].map(([key, tensor]) => [
        key.replace("control_model.", ""),
        tensor,
      ]),
    );
    const base = tensorsOf("checkpoints/tiny-sd1.safetensors").get(`model.diffusion_model.${LAYER}.weight`)!;
    const { [`${LAYER}.weight`]: own, ...whole } = net;
    const [rows, columns] = base.shape as [number, number];
    const [before, after] = [toTensor(base).data, toTensor(own!).data];
    const difference = Array.from(after, (value, i) => value - before[i]!);
    const one = Array.from({ length: columns ** 2 }, (_, i) => (i % (columns + 1) === 0 ? 1 : 0));
    mkdirSync(join(folder(), "controlnet"));
    writeWeights(join(folder(), "controlnet/lora.safetensors"), {
      ...whole,
      [CONTROL_LORA_MARK]: f32([0]),
      [`${LAYER}.up`]: f32([rows, columns], difference),
      [`${LAYER}.down`]: f32([columns, columns], one),
    });
  });

  it("is the ControlNet that its products make of the UNet, and is called so", async () => {
    const { model } = await host().loadCheckpoint("tiny-sd1.safetensors");
    const predicted = async (name: string, strength: number) => {
      const net = await host().loadFile!("controlnet", name);
      const control = { net, hint: Tensor.full([1, 64, 64, 3], 0.5), strength, start: 0, end: 1 };
      return model.predict!(randn([1, 4, 8, 8], { seed: 1 }), 2, [[someContext(1), { control }]] as Conditioning);
    };
    const whole = await predicted("tiny-sd1-control.safetensors", 1);
    assert.ok(layerError(await predicted("lora.safetensors", 1), whole) < 1e-5);
    assert.ok(layerError(await predicted("lora.safetensors", 0), whole) > 1e-4);
    const name = "controlnet/lora.safetensors";
    const words = familyInWords("controlnet", name, await weightFile(join(folder(), name)));
    assert.equal(await words, "Control-LoRA of SD 1 or 2");
  });
});

const LAYER = "time_embed.0";
