import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Conditioning, type Host, Tensor } from "latentkit";
import { createCheckpointHost } from "latentkit/models";
import { buildFlux } from "#src/host/checkpoint/flux/build.js";
import type { FluxConfig } from "#src/host/checkpoint/flux/config.js";
import { OnnxGraph } from "#src/host/checkpoint/onnx/graph.js";
import { CPU_TARGET, type Target } from "#src/host/checkpoint/onnx/target.js";
import { tokenizeFlux2 } from "#src/host/checkpoint/tokenizer/qwen.js";
import { buildVaeDecoder, buildVaeEncoder } from "#src/host/checkpoint/vae/build.js";
import { recogniseVae } from "#src/host/checkpoint/vae/recognise.js";
import { networkOf } from "#src/host/checkpoint/weights/network.js";
import type { WeightMap } from "#src/host/checkpoint/weights/stored.js";
import { narrowed } from "#src/tensor/parts.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { runBuilt } from "../../../../helpers/models/built.js";
import { FLUX2_DEV, fluxFeeds, latentOf } from "../../../../helpers/models/flux-feeds.js";
import { fluxFile, fluxLayers, fluxWeights, unpackFlux } from "../../../../helpers/models/golden-flux.js";
import { layerError } from "../../../../helpers/models/layers.js";
import { graphSession } from "../../../../helpers/models/session.js";

const FORMS: readonly (readonly [string, Target])[] = [
  ["fused", CPU_TARGET],
  ["plain", { attention: "plain", largestHead: 256, matMul: "transposed", convChannels: "fours", halfTypes: [] }],
];
const TOLERANCE = 5e-6;
const layers = fluxLayers("flux2");
const { tensor } = layers;

describe("buildFlux of Flux.2", () => {
  const folder = temporaryFolder();
  const load = async (cases: string): Promise<WeightMap> => {
    const klein = await fluxWeights("diffusion_models/flux2_klein", folder());
    if (cases === "klein") return klein;
    return new Map([...klein, ...(await fluxWeights("diffusion_models/flux2_guidance_in", folder()))]);
  };

  for (const [cases, config] of [
    ["klein", { ...FLUX2_DEV, hasGuidance: false }],
    ["dev", FLUX2_DEV],
  ] as [string, FluxConfig][])
    for (const [form, target] of FORMS)
      it(`computes what the reference does for ${cases}, ${form}`, async () => {
        const graph = new OnnxGraph("flux", target);
        buildFlux(networkOf(graph, await load(cases)), config);
        const session = await graphSession(graph.encode({ overridable: false }));
        for (const each of layers[cases]) {
          const { out } = await session.run(fluxFeeds(each, config, tensor));
          const expected = tensor(each.out);
          assert.ok(layerError(latentOf(out!, expected, config), expected) < TOLERANCE, each.out);
        }
        await session.release();
      });

  it("has the reference's value after every part", async () => {
    const graph = new OnnxGraph("flux");
    const expected: Record<string, string> = {};
    for (const [part, name] of Object.entries<string | [string, string]>(layers.trace_dev.after))
      if (typeof name === "string") expected[part] = name;
      else [expected[`${part}.img`], expected[`${part}.txt`]] = name;
    const traced = new Set<string>();
    buildFlux(networkOf(graph, await load("dev")), FLUX2_DEV, (name, value) => {
      if (expected[name] === undefined) return;
      traced.add(name);
      graph.output(value, name, "float", tensor(expected[name]).shape);
    });
    assert.deepEqual(traced, new Set(Object.keys(expected)));
    const session = await graphSession(graph.encode({ overridable: false }));
    const outputs = await session.run(fluxFeeds(layers.trace_dev, FLUX2_DEV, tensor));
    for (const name of traced) {
      const wanted = tensor(expected[name]!);
      assert.ok(layerError(outputs[name]!.reshape(wanted.shape), wanted) < TOLERANCE, name);
    }
    await session.release();
  });
});

describe("the VAE of Flux.2", () => {
  const folder = temporaryFolder();

  it("decodes and encodes as the reference does, in latents of 128 normalised channels", async () => {
    const vae = recogniseVae(await fluxFile("vae/flux2_vae", folder()));
    assert.ok(vae.kind === "vae");
    const { config, weights } = vae.part;
    const decoded = await runBuilt(
      weights,
      (network) => buildVaeDecoder(network, config),
      ...layers.vae_decode.map(({ z }: { z: string }) => ({ z: tensor(z) })),
    );
    for (const [i, { raw }] of layers.vae_decode.entries())
      assert.ok(layerError(decoded[i]!.image!, tensor(raw)) < TOLERANCE, raw);
    const encoded = await runBuilt(
      weights,
      (network) => buildVaeEncoder(network, config, { asImages: true }),
      ...layers.vae_encode.map(({ image }: { image: string }) => ({ image: tensor(image) })),
    );
    for (const [i, { latent }] of layers.vae_encode.entries())
      assert.ok(layerError(encoded[i]!.latent!, tensor(latent)) < TOLERANCE, latent);
  });
});

describe("the clip of Flux.2 klein", () => {
  let folder: string;
  let host: Host;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "latentkit-flux2-"));
    unpackFlux(folder);
    host = createCheckpointHost({ models: folder });
  });
  after(async () => {
    await host.close?.();
    rmSync(folder, { recursive: true });
  });

  const load = () => host.loadFile!("text_encoders", "qwen3_klein.safetensors", undefined, { type: "flux2" });

  it("encodes as the reference does, with padding that no token attends to", async () => {
    const clip = await load();
    for (const { prompt, ids, padded_to, cond } of layers.encode) {
      assert.deepEqual(tokenizeFlux2(prompt), ids, prompt);
      const [[context]] = (await clip.encodeText!(prompt)) as [Conditioning[number]];
      assert.deepEqual(context.shape, [1, padded_to, 96]);
      const expected: Tensor = tensor(cond);
      const first = narrowed(context, 1, 0, ids.length + 4).reshape(expected.shape);
      assert.ok(layerError(first, expected) < TOLERANCE, prompt);
    }
  });

  it("reads a file that Z-Image's clip has read before in its own way", async () => {
    const settings = { type: "lumina2" };
    const ofZImage = await host.loadFile!("text_encoders", "qwen3_klein.safetensors", undefined, settings);
    const [[one]] = (await ofZImage.encodeText!("a cat")) as [Conditioning[number]];
    const [[other]] = (await (await load()).encodeText!("a cat")) as [Conditioning[number]];
    const [[again]] = (await ofZImage.encodeText!("a cat")) as [Conditioning[number]];
    assert.deepEqual([one.shape[2], other.shape[2]], [32, 96]);
    assert.deepEqual(again, one);
  });

  it("is that of a checkpoint with all parts, whose vae has cells of 16 pixels", async () => {
    const { clip, vae, model } = await host.loadCheckpoint("flux2_klein.safetensors");
    const [[context]] = (await clip.encodeText!("a cat")) as [Conditioning[number]];
    const [[own]] = (await (await load()).encodeText!("a cat")) as [Conditioning[number]];
    assert.deepEqual(context, own);
    assert.deepEqual([model.sampling.name, model.sampling.latentFormat.name, vae.cell], ["flux2", "Flux2", 16]);
    const latent = await vae.encode(Tensor.full([1, 40, 50, 3], 0.5));
    assert.deepEqual(latent.shape, [1, 128, 2, 3]);
    assert.deepEqual((await vae.decode(latent)).shape, [1, 32, 48, 3]);
    await refuses(vae.encode(Tensor.zeros([1, 15, 64, 3])), "tensor.bad-shape", /at least 16 x 16 pixels/);
  });

  it("refuses a prompt beyond every use", async () => {
    const long = (await load()).encodeText!("1".repeat(5000));
    await refuses(long, "value.out-of-range", /at most 4096 tokens, received 5012/);
  });
});
