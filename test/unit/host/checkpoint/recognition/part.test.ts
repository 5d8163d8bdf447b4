import assert from "node:assert/strict";
import type { ModelHeader, Part } from "#src/host/checkpoint/recognition/part.js";
import { recogniseTextEncoders } from "#src/host/checkpoint/text-encoder/recognise.js";
import { buildControlNet, controlNetPart } from "#src/host/checkpoint/unet/control.js";
import { buildUpscaler } from "#src/host/checkpoint/upscaler/build.js";
import { upscalerPart } from "#src/host/checkpoint/upscaler/recognise.js";
import { recogniseVae } from "#src/host/checkpoint/vae/recognise.js";
import { buildTaesdDecoder } from "#src/host/checkpoint/vae/taesd.js";
import { listedNetwork, type Network } from "#src/host/checkpoint/weights/network.js";
import { refuses } from "../../../../helpers/errors.js";
import { fullSizePart, fullSizeShapes, headerOf, type Shapes, withKeys } from "../../../../helpers/models/full-size.js";
import { recogniseStableDiffusion } from "../../../../helpers/models/recognised.js";

const read = async (): Promise<Float32Array> => new Float32Array(4);

function shapesOf(build: (network: Network) => void): Shapes {
  const network = listedNetwork();
  build(network);
  return Object.fromEntries(network.listed);
}

/** A file of each kind, how it is recognised, and the layer of one of its weights. */
async function kinds(): Promise<
  { shapes: Shapes; layer: string; recognise: (file: ModelHeader) => Promise<readonly Part<unknown>[]> }[]
> {
  const { sd1, sdxl } = fullSizeShapes();
  const checkpoint = async (file: ModelHeader) => {
    const { unet, textEncoders, vae } = await recogniseStableDiffusion(file, read);
    return [unet, ...textEncoders, ...(vae === undefined ? [] : [vae])];
  };
  const vae = async (file: ModelHeader) => [recogniseVae(file).part];
  const { unet } = await recogniseStableDiffusion(headerOf(sd1), read);
  const taesd = { channels: 64, latentChannels: 4, hasDecoder: true, hasEncoder: false };
  const compact = { kind: "compact", channels: 64, convolutions: 4, scale: 4 } as const;
  const clip = fullSizePart("sd1", "cond_stage_model.");
  return [
    { shapes: sd1, layer: "model.diffusion_model.input_blocks.1.1.proj_in", recognise: checkpoint },
    { shapes: sd1, layer: "first_stage_model.decoder.conv_in", recognise: checkpoint },
    { shapes: sdxl, layer: "conditioner.embedders.1.model.ln_final", recognise: checkpoint },
    {
      shapes: clip,
      layer: "transformer.text_model.final_layer_norm",
      recognise: async (file) => recogniseTextEncoders(file).map(({ part }) => part),
    },
    { shapes: fullSizePart("sd1", "first_stage_model."), layer: "encoder.conv_in", recognise: vae },
    {
      shapes: shapesOf((network) => buildTaesdDecoder(network, taesd)),
      layer: "taesd_decoder.3.conv.0",
      recognise: vae,
    },
    {
      shapes: shapesOf((network) => buildControlNet(network, unet.config)),
      layer: "zero_convs.1.0",
      recognise: async (file) => [controlNetPart(file)],
    },
    {
      shapes: shapesOf((network) => buildUpscaler(network, compact)),
      layer: "body.2",
      recognise: async (file) => [upscalerPart(file)],
    },
  ];
}

describe("every part of a model file", function () {
  this.timeout(60_000);

  it("is the same inside of wrappers, whose names its errors have", async () => {
    for (const { shapes, layer, recognise } of await kinds()) {
      const plain = await recognise(headerOf(shapes));
      for (const wrapper of ["model.", "module.", "state_dict.", "net.", "_orig_mod.", "module.model.", "a.b.c.d."]) {
        const wrapped = withKeys({ ...shapes, epoch: [] }, (key) => (key === "epoch" ? key : wrapper + key));
        const parts = await recognise(headerOf(wrapped));
        assert.deepEqual(
          parts.map(({ config }) => config),
          plain.map(({ config }) => config),
          wrapper + layer,
        );
        const [weights, expected] = [parts, plain].map((all) => all.map((part) => [...part.weights.keys()]));
        assert.deepEqual(weights, expected);
      }
      const damaged = withKeys({ ...shapes, [`${layer}.weight`]: [7, 7, 7] }, (key) => `module.${key}`);
      const { message } = await refuses(recognise(headerOf(damaged)), /^model\./);
      assert.ok(message.includes(`"module.${layer}.weight"`), message);
    }
  });

  it("is the same with a trainer's prefix beside other keys", async () => {
    for (const { shapes, recognise } of await kinds()) {
      const plain = (await recognise(headerOf(shapes))).map(({ weights }) => [...weights.keys()]);
      for (const wrapper of ["module.", "state_dict.", "state_dict.module.", "state_dict._orig_mod."]) {
        const wrapped = withKeys(shapes, (key) => wrapper + key);
        const others = { "optimizer.state.0.step": [], "hyper_parameters.lr": [], "model_ema.decay": [], epoch: [] };
        const parts = await recognise(headerOf({ ...wrapped, ...others }));
        assert.deepEqual(
          parts.map(({ weights }) => [...weights.keys()]),
          plain,
          wrapper,
        );
      }
    }
  });

  it("is the same if the UNet alone is wrapped or compiled", async () => {
    const { sd1 } = fullSizeShapes();
    const unet = "model.diffusion_model.";
    const key = `${unet}middle_block.0.in_layers.2.weight`;
    const plain = await recogniseStableDiffusion(headerOf(sd1), read);
    for (const wrapped of [`module.${unet}`, `${unet}_orig_mod.`, `module.${unet}_orig_mod.`]) {
      const rename = (name: string) => (name.startsWith(unet) ? wrapped + name.slice(unet.length) : name);
      const found = await recogniseStableDiffusion(headerOf(withKeys(sd1, rename)), read);
      assert.deepEqual(found.unet.config, plain.unet.config);
      assert.equal(found.vae?.weights.size, plain.vae?.weights.size);
      assert.equal(found.textEncoders.length, 1);
      const damaged = headerOf(withKeys({ ...sd1, [key]: [7, 7] }, rename));
      const { message } = await refuses(recogniseStableDiffusion(damaged, read), "model.invalid");
      assert.ok(message.includes(`"${rename(key)}"`), message);
    }
  });

  it("names the key of its kind where it is wrapped beside other keys", async () => {
    const vae = withKeys(fullSizePart("sd1", "first_stage_model."), (key) => `ema.${key}`);
    const work = () => recogniseVae(headerOf({ ...vae, "optimizer.step": [1] }));
    await refuses(work, "model.unsupported", /received a VAE with the key "ema\.\w+\.conv_in\.weight"\.$/);
  });

  it("is refused with a tensor beside a weight that changes it in an unknown way", async () => {
    const endings = [
      ".weight_zero_point",
      ".qscale",
      ".absmax",
      ".weight.absmax",
      ".weight.quant_map",
      ".weight_scale_2",
      ".weight.quant_state.bitsandbytes__nf4",
      ".g_idx",
      ".scales",
      ".qzeros",
      ".bias_scale",
      ".weight_scale_inv",
      ".pre_quant_scale",
      ".weight_g",
    ];
    for (const [index, { shapes, layer, recognise }] of (await kinds()).entries())
      for (const ending of index === 0 ? endings : endings.slice(0, 1)) {
        const work = recognise(headerOf({ ...shapes, [layer + ending]: [1] }));
        const { message } = await refuses(work, "model.unsupported");
        const expected = `one with "${layer}${ending}", which changes a weight in a way that latentkit does not support.`;
        assert.ok(message.endsWith(expected), message);
      }
  });

  it("is refused for packed weights in the place of a weight, by their key", async () => {
    for (const { shapes, layer, recognise } of await kinds()) {
      const packed = withKeys(shapes, (key) => (key === `${layer}.weight` ? `${layer}.qweight` : key));
      const { message } = await refuses(recognise(headerOf(packed)), "model.unsupported");
      assert.ok(message.includes(`"${layer}.qweight"`), message);
    }
    const { sdxl } = fullSizeShapes();
    for (const ending of ["_weight_scale", "_scale", ".scales", "_bias_scale"]) {
      const key = `conditioner.embedders.1.model.transformer.resblocks.0.attn.in_proj${ending}`;
      const work = recogniseStableDiffusion(headerOf({ ...sdxl, [key]: [1] }), read);
      const { message } = await refuses(work, "model.unsupported");
      assert.ok(message.includes(`"${key}"`), message);
    }
  });

  it("leaves tensors alone that are beside no weight", async () => {
    for (const { shapes, recognise } of await kinds()) {
      const others = {
        scaled_fp8: [2],
        logit_scale: [],
        v_pred_note: [0],
        "model_ema.decay": [],
        alphas_cumprod: [1000],
        "model_ema.diffusion_modelinput_blocks00weight": [1],
        "cond_stage_model.model.attn_mask": [77, 77],
        "cond_stage_model.transformer.text_model.embeddings.position_ids": [1, 77],
        "loss.logvar": [],
        "cond_stage_model.logit_scale": [],
        "vision_model.post_layernorm.num_batches_tracked": [],
      };
      const plain = await recognise(headerOf(shapes));
      const parts = await recognise(headerOf({ ...shapes, ...others }));
      assert.deepEqual(
        parts.map(({ weights }) => weights.size),
        plain.map(({ weights }) => weights.size),
      );
    }
  });

  it("takes factors of one number or one for each row, and refuses others by key", async () => {
    for (const { shapes, layer, recognise } of await kinds()) {
      const file = headerOf(shapes);
      const key = `${layer}.weight`;
      const weight = file.weights.get(key)!;
      const rows = weight.shape[0]!;
      const withFactor = (shape: readonly number[], dtype: "F32" | "I32" = "F32"): ModelHeader => {
        const factor = { ...weight, key: `${layer}.weight_scale`, dtype, shape };
        return { ...file, weights: new Map(file.weights).set(key, { ...weight, factor }) };
      };
      for (const shape of [[], [1], [1, 1], [rows], [rows, 1]]) {
        const parts = await recognise(withFactor(shape));
        assert.equal(parts.flatMap((part) => [...part.weights.values()]).filter(({ factor }) => factor).length, 1);
      }
      for (const [shape, dtype] of [
        [[2 * rows], "F32"],
        [[1, 2], "F32"],
        [[rows, 2], "F32"],
        [[0], "F32"],
        [[], "I32"],
      ] as const) {
        const { message } = await refuses(recognise(withFactor(shape, dtype)), "model.invalid");
        assert.ok(
          message.includes(`"${layer}.weight_scale" of floats, one or one for each row, received ${dtype} [`),
          message,
        );
      }
    }
  });
});
