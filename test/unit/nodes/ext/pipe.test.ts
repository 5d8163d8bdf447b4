import assert from "node:assert/strict";
import { createPreviewHost, encodePrompt, invokeNode, Tensor } from "latentkit";
import type { Conditioning, Pipe } from "#src/host/types.js";
import { refuses } from "../../../helpers/errors.js";
import { assertSameBits } from "../../../helpers/tensor/bits.js";

const host = createPreviewHost();
const SETTINGS = {
  ckpt_name: "preview-sd15.safetensors",
  positive: "a (fox:1.3)",
  negative: "blurry",
  batch_size: 2,
  empty_latent_width: 128,
  empty_latent_height: 72,
};
const load = (inputs: object = {}) => invokeNode("ext pipeLoader", { ...SETTINGS, ...inputs }, { host });

describe("ext pipeLoader", () => {
  it("makes a whole pipe", async () => {
    const { result } = await load();
    const [pipe, model, vae, clip] = result as [Pipe, unknown, unknown, unknown];
    const checkpoint = await host.loadCheckpoint(SETTINGS.ckpt_name);
    assert.deepEqual([model, vae, clip], [checkpoint.model, checkpoint.vae, checkpoint.clip]);
    assert.deepEqual([pipe.model, pipe.vae, pipe.clip], [model, vae, clip]);
    assertSameBits(pipe.samples?.samples, Tensor.zeros([2, 4, 9, 16]));
    assert.deepEqual(pipe.positive, await encodePrompt(checkpoint.clip, SETTINGS.positive));
    assert.deepEqual(pipe.negative, await encodePrompt(checkpoint.clip, SETTINGS.negative));
    assert.deepEqual(pipe.loader_settings, {
      ...SETTINGS,
      ...{ vae_name: "Baked VAE", clip_skip: 0, lora_name: "None", lora_model_strength: 1, lora_clip_strength: 1 },
      positive_token_normalization: "none",
      positive_weight_interpretation: "comfy",
      negative_token_normalization: "none",
      negative_weight_interpretation: "comfy",
      a1111_prompt_style: false,
      steps: 20,
    });
  });

  it("encodes as the settings say", async () => {
    const { clip } = await host.loadCheckpoint(SETTINGS.ckpt_name);
    const settings = { positive_token_normalization: "length+mean", positive_weight_interpretation: "A1111" };
    const [pipe] = (await load(settings)).result;
    const options = { tokenNormalization: "length+mean", weightInterpretation: "A1111" };
    assert.deepEqual(pipe.positive, await encodePrompt(clip, SETTINGS.positive, options));
    const [styled] = (await load({ positive: "[a:b:0.5]", a1111_prompt_style: true, steps: 4 })).result;
    assert.equal(styled.positive?.length, 2);
  });

  it("has as many latent channels as the model", async () => {
    const [pipe] = (await load({ ckpt_name: "preview-flux.safetensors" })).result;
    assert.deepEqual(pipe.samples?.samples.shape, [2, 16, 9, 16]);
  });

  it("refuses bad inputs by name", async () => {
    const bad: [string, unknown][] = [
      ["ckpt_name", "other.safetensors"],
      ["ckpt_name", undefined],
      ["positive", null],
      ["negative", ["x"]],
      ["batch_size", 0],
      ["batch_size", 4097],
      ["empty_latent_width", 15],
      ["empty_latent_width", 1e6],
      ["empty_latent_height", Number.NaN],
      ["positive_token_normalization", "bogus"],
      ["positive_weight_interpretation", "fixed attention"],
      ["negative_weight_interpretation", "bogus"],
      ["a1111_prompt_style", "maybe"],
      ["steps", 0],
      ["steps", 10001],
    ];
    for (const [name, value] of bad) {
      await refuses(load({ [name]: value }), /^input\./, new RegExp(`ext pipeLoader, input "${name}"`));
    }
    const huge = { batch_size: 4096, empty_latent_width: 16384, empty_latent_height: 16384 };
    await refuses(load(huge), "tensor.too-large");
  });
});

describe("ext pipeOut", () => {
  it("takes a pipe apart", async () => {
    const [pipe] = (await load()).result;
    const { result } = await invokeNode("ext pipeOut", { pipe });
    assert.deepEqual(result, [pipe, pipe.model, pipe.positive, pipe.negative, pipe.samples, pipe.vae, pipe.clip]);
    assert.equal(result[0], pipe);
  });

  it("gives null for what is not there", async () => {
    const { result } = await invokeNode("ext pipeOut", { pipe: {} });
    assert.deepEqual(result, [{}, null, null, null, null, null, null]);
  });

  it("refuses what is no pipe", async () => {
    for (const pipe of [undefined, null, "pipe", []]) {
      await refuses(invokeNode("ext pipeOut", { pipe }), /^input\./, /input "pipe"/);
    }
  });
});

describe("ext pipeEdit", () => {
  it("changes a copy", async () => {
    const [pipe] = (await load()).result;
    const before = { ...pipe };
    Object.freeze(pipe);
    const latent = { samples: Tensor.zeros([1, 4, 2, 2]) };
    const positive: Conditioning = [[Tensor.zeros([1, 77, 8]), {}]];
    const [edited] = (await invokeNode("ext pipeEdit", { pipe, latent, positive })).result;
    assert.deepEqual(edited, { ...before, samples: latent, positive });
    assert.deepEqual(pipe, before);
    assert.equal(edited.loader_settings, pipe.loader_settings);
  });

  it("keeps everything where nothing is given", async () => {
    const [pipe] = (await load()).result;
    const [edited] = (await invokeNode("ext pipeEdit", { pipe })).result;
    assert.deepEqual(edited, pipe);
    assert.notEqual(edited, pipe);
  });

  it("refuses parts of the wrong type", async () => {
    for (const name of ["model", "positive", "negative", "latent", "vae", "clip"]) {
      await refuses(invokeNode("ext pipeEdit", { pipe: {}, [name]: 5 }), "input.wrong-type", new RegExp(`"${name}"`));
    }
  });
});
