import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Clip, type Conditioning, type Host, type Model, randn, render, Tensor } from "latentkit";
import { createCheckpointHost } from "latentkit/models";
import { SD3_CLIP } from "#src/host/checkpoint/families/clip-types.js";
import { placesOf } from "#src/host/checkpoint/sd3/model.js";
import { narrowed } from "#src/tensor/parts.js";
import { refuses } from "../../../../helpers/errors.js";
import { root } from "../../../../helpers/folders.js";
import { receiptOf } from "../../../../helpers/graph/receipt-graphs.js";
import { unpackFlux } from "../../../../helpers/models/golden-flux.js";
import { layerError } from "../../../../helpers/models/layers.js";
import { type RawTensor, writeWeights } from "../../../../helpers/models/weight-file.js";

describe("models of SD 3", () => {
  let folder: string;
  let host: Host;
  let model: Model;
  const clipOf = (name: string, type = "sd3"): Promise<Clip> =>
    host.loadFile!("text_encoders", `${name}.safetensors`, undefined, { type });
  const encoded = async (clip: Clip, text: string) => (await clip.encodeText!(text))[0] as Conditioning[number];
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "latentkit-sd3-"));
    unpackFlux(folder);
    host = createCheckpointHost({ models: folder });
    ({ model } = await host.loadCheckpoint("sd3.safetensors"));
  });
  after(async () => {
    await host.close?.();
    rmSync(folder, { recursive: true });
  });

  it("render the example sd3, and name their files in its receipt", async () => {
    const unet = join(folder, "diffusion_models", "sd3.safetensors");
    copyFileSync(join(folder, "checkpoints", "sd3.safetensors"), unet);
    const set = {
      "1.unet_name": "sd3.safetensors",
      "2.clip_name3": "t5_sd3.safetensors",
      "3.vae_name": "ae.safetensors",
      prompt: "two dogs on mars, film grain",
      width: 64,
      height: 48,
      steps: 2,
    };
    const { files, warnings } = await render(join(root, "examples/models/sd3.json"), {
      host,
      set,
      outputDir: join(folder, "out"),
    });
    assert.deepEqual(warnings, []);
    assert.deepEqual(Object.keys(receiptOf(files[0]!.path!).models!).sort(), [
      "diffusion_models/sd3.safetensors",
      "text_encoders/clip_g.safetensors",
      "text_encoders/clip_l.safetensors",
      "text_encoders/t5_sd3.safetensors",
      "vae/ae.safetensors",
    ]);
  });

  it("are a flow of SD 3's latents", () => {
    const { name, prediction, latentFormat, sigmas } = model.sampling;
    assert.deepEqual([name, prediction, latentFormat.name, sigmas.length], ["sd3", "flow", "SD3", 1000]);
  });

  it("predict conditionings of any length and width as alone, and refuse others", async () => {
    const entries = [
      [randn([1, 9, 208], { seed: 1 }), { pooled_output: randn([1, 192], { seed: 2 }) }],
      [randn([1, 9, 208], { seed: 3 }), {}],
      [randn([1, 12, 192], { seed: 4 }), {}],
    ] as Conditioning;
    const x = randn([3, 16, 5, 6], { seed: 1 });
    const together = await model.predict!(x, 0.7, entries);
    for (const [i, each] of entries.entries()) {
      const own = narrowed(x, 0, i, 1);
      assert.ok(layerError(narrowed(together, 0, i, 1), await model.predict!(own, 0.7, [each])) < 1e-6);
    }
    const [wide] = [[Tensor.zeros([1, 9, 224]), {}]] as Conditioning;
    await refuses(model.predict!(x, 0.7, [wide!]), "value.invalid", /^SD 3 transformer of sd3.*\[n, tokens, 208\]/);
    const pooled = [[Tensor.zeros([1, 9, 208]), { pooled_output: Tensor.zeros([1, 8]) }]] as Conditioning;
    await refuses(model.predict!(x, 0.7, pooled), "value.invalid", /pooled_output \[n, 192\]/);
    const control = [[Tensor.zeros([1, 9, 208]), { control: {} }]] as Conditioning;
    await refuses(model.predict!(x, 0.7, control), "host.missing", /does not support ControlNets/);
  });

  it("read a prompt by the encoders that are loaded, in any order", async () => {
    const [l, g, t5] = await Promise.all(["clip_l", "clip_g", "t5_sd3"].map((name) => clipOf(name)));
    const all = t5!.joinedWith!([g!, l!]);
    const [context, { pooled_output: pooled }] = await encoded(all, "a photo of a cat");
    assert.deepEqual(
      [context.shape, (pooled as Tensor).shape],
      [
        [1, 154, 208],
        [1, 192],
      ],
    );
    const [withoutT5] = await encoded(g!.joinedWith!([l!]), "a photo of a cat");
    const first = narrowed(context, 1, 0, 77);
    assert.deepEqual(withoutT5.shape, [1, 77, 192]);
    assert.ok(layerError(withoutT5, Tensor.from(columns(first, 192), [1, 77, 192])) < 1e-6);
    const [onlyT5, { pooled_output: zeros }] = await encoded(t5!, "a photo of a cat");
    assert.ok(layerError(onlyT5, narrowed(context, 1, 77, 77)) < 1e-6);
    assert.deepEqual(zeros, Tensor.zeros([1, 2048]));
    const [onlyG, { pooled_output: halfPooled }] = await encoded(g!, "a photo of a cat");
    assert.deepEqual(
      [onlyG.shape, (halfPooled as Tensor).shape],
      [
        [1, 77, 768 + 128],
        [1, 768 + 128],
      ],
    );
    assert.ok(onlyG.data.subarray(0, 768).every((value) => value === 0));
    const [skipped] = await encoded(all.atLayer!(-1), "a photo of a cat");
    assert.ok(layerError(narrowed(skipped, 1, 0, 77), first) > 1e-3);
    await refuses(() => all.atLayer!(-30), "value.out-of-range", /Clip layer/);
  });

  it("take each encoder once, and texts of theirs alone", async () => {
    const [l, t5] = [await clipOf("clip_l"), await clipOf("t5_sd3")];
    const expected = /expected each of CLIP-L, CLIP-G and T5 once, with type "sd3", received CLIP-L and CLIP-L\./;
    await refuses(() => l.joinedWith!([l]), "value.invalid", expected);
    await refuses(t5.encodeTexts!({ llama: "" }, []), "value.invalid", /SD 3's encoders, clip_l, clip_g and t5xxl/);
    await refuses(l.encodeTexts!({ t5xxl: "a" }, []), "value.invalid", /a text for one of SD 3's encoders/);
    const cond = (tokens: number, width: number) => [Tensor.full([1, tokens, width], 1), {}] as Conditioning[number];
    const [joined] = SD3_CLIP.combine({ l: cond(154, 2), g: cond(77, 3), t5: Tensor.full([1, 5, 6], 2) });
    assert.deepEqual(
      [joined.shape, [...joined.data.subarray(0, 6)]],
      [
        [1, 82, 6],
        [1, 1, 1, 1, 1, 0],
      ],
    );
    const narrow = () => SD3_CLIP.combine({ l: cond(1, 8), t5: Tensor.full([1, 5, 6], 2) });
    await refuses(narrow, "value.invalid", /a T5 of at least 8 numbers of a token.*received 6/);
  });

  it("take LoRAs for the model and its text encoders", async () => {
    const layers: [string, number, number][] = [
      ["lora_unet_joint_blocks_0_x_block_attn2_qkv", 384, 128],
      ["lora_te2_text_model_encoder_layers_1_mlp_fc1", 512, 128],
      ["lora_te3_encoder_block_0_layer_0_SelfAttention_q", 64, 208],
    ];
    const all = layers.flatMap(([layer, rows, width], seed): [string, RawTensor][] => [
      [`${layer}.lora_down.weight`, raw([1, width], seed)],
      [`${layer}.lora_up.weight`, raw([rows, 1], seed + 9)],
    ]);
    writeWeights(join(folder, "loras", "sd3.safetensors"), Object.fromEntries(all));
    const lora = await host.loadFile!("loras", "sd3.safetensors");
    const clip = (await clipOf("clip_g")).joinedWith!([await clipOf("t5_sd3"), await clipOf("clip_l")]);
    assert.equal(lora.unmatched!(model, clip), undefined);
    const [changed, text] = lora.apply(model, clip, { model: 1, clip: 1 });
    const [context] = await encoded(clip, "a photo of a cat");
    const [other] = await encoded(text!, "a photo of a cat");
    for (const at of [0, 77])
      assert.ok(layerError(narrowed(other, 1, at, 77), narrowed(context, 1, at, 77)) > 1e-3, `${at}`);
    const x = randn([1, 16, 4, 4], { seed: 1 });
    const entry = [[randn([1, 9, 208], { seed: 1 }), {}]] as Conditioning;
    assert.ok(layerError(await changed.predict!(x, 0.5, entry), await model.predict!(x, 0.5, entry)) > 1e-3);
  });
});

function raw(shape: [number, number], seed: number): RawTensor {
  const { data } = randn(shape, { seed });
  return { dtype: "F32", shape, bytes: new Uint8Array(data.buffer, data.byteOffset, data.byteLength) };
}

const columns = ({ data, shape }: Tensor, count: number): number[] =>
  [...data].filter((_, index) => index % shape[2]! < count);

describe("placesOf", () => {
  it("are in the middle of the table, rounded up and left", async () => {
    assert.deepEqual(placesOf([2, 3], 5, "model"), [6, 7, 8, 11, 12, 13]);
    assert.deepEqual(placesOf([1, 2], 2, "model"), [0, 1]);
    const wide = () => placesOf([1, 6], 5, "model");
    await refuses(wide, "tensor.bad-shape", /^model: .* at most 80 pixels on a side, received 96 x 16/);
  });
});
