import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import type { Value } from "#src/host/checkpoint/onnx/graph.js";
import { buildVaeDecoder, buildVaeEncoder, type VaeConfig } from "#src/host/checkpoint/vae/build.js";
import { recogniseVae } from "#src/host/checkpoint/vae/recognise.js";
import type { Network } from "#src/host/checkpoint/weights/network.js";
import { readValues } from "#src/host/checkpoint/weights/values.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { runBuilt } from "../../../../helpers/models/built.js";
import { diffusersVae } from "../../../../helpers/models/diffusers-vae.js";
import { isWholeSet } from "../../../../helpers/models/golden.js";
import { flowLayers, flowWeights } from "../../../../helpers/models/golden-flow.js";
import { goldenLayers, layerError } from "../../../../helpers/models/layers.js";
import {
  add,
  attend,
  conv,
  groupNorm,
  type Picture,
  pictureOf,
  silu,
  tensorOf,
  type Weights,
} from "../../../../helpers/models/naive-layers.js";
import { CHECKPOINTS, recognised } from "../../../../helpers/models/recognised.js";

const TOLERANCE = 1e-5;
/**
 * An almost grey image. The reference's latents of it are 1e-2 off: PyTorch takes the variance of a group as the mean of
 * squares minus the squared mean where channels lie last in memory, in float32. In double precision it agrees with us.
 */
const QUIET = "enc.quiet.image";

/** A listener that makes every block an output of the graph, and the keys it has seen. */
function traceTo(network: Network): { trace: (key: string, value: Value) => void; keys: string[] } {
  const keys: string[] = [];
  const trace = (key: string, value: Value): void => {
    keys.push(key);
    network.graph.output(value, key, "float", ["b", "c", `h ${key}`, `w ${key}`]);
  };
  return { trace, keys };
}

/** Channels last in 0…1, as channels first in -1…1. */
function asInput(image: Tensor): Tensor {
  const [batch, height, width, channels] = image.shape as [number, number, number, number];
  const out = Tensor.unfilled([batch, channels, height, width]);
  const cells = height * width;
  for (let i = 0; i < image.size; i++) {
    const [item, cell, channel] = [Math.floor(i / (cells * channels)), Math.floor(i / channels) % cells, i % channels];
    out.data[(item * channels + channel) * cells + cell] = 2 * image.data[i]! - 1;
  }
  return out;
}

/** The same encoder in double precision. */
function naiveLatent(weights: Weights, { channels, multipliers, blocks }: VaeConfig, image: Picture): Picture {
  const norm = (key: string, x: Picture): Picture => groupNorm(weights, key, x, 1e-6);
  const resBlock = (key: string, x: Picture, width: number): Picture => {
    const first = conv(weights, `${key}.conv1`, silu(norm(`${key}.norm1`, x)), width);
    const second = conv(weights, `${key}.conv2`, silu(norm(`${key}.norm2`, first)), width);
    return add(second, x.channels === width ? x : conv(weights, `${key}.nin_shortcut`, x, width, { kernel: 1 }));
  };
  let x = conv(weights, "encoder.conv_in", image, channels);
  for (const [level, multiplier] of multipliers.entries()) {
    for (let block = 0; block < blocks; block++)
      x = resBlock(`encoder.down.${level}.block.${block}`, x, channels * multiplier);
    if (level === multipliers.length - 1) continue;
    x = conv(weights, `encoder.down.${level}.downsample.conv`, x, x.channels, { stride: 2, pads: [0, 1] });
  }
  x = resBlock("encoder.mid.block_1", x, x.channels);
  const normal = norm("encoder.mid.attn_1.norm", x);
  const layer = (name: string, value: Picture): Picture =>
    conv(weights, `encoder.mid.attn_1.${name}`, value, x.channels, { kernel: 1 });
  x = add(x, layer("proj_out", attend(layer("q", normal), layer("k", normal), layer("v", normal))));
  x = resBlock("encoder.mid.block_2", x, x.channels);
  x = conv(weights, "encoder.conv_out", silu(norm("encoder.norm_out", x)), 8);
  const moments = conv(weights, "quant_conv", x, 8, { kernel: 1 });
  return { ...moments, channels: 4, data: moments.data.slice(0, moments.data.length / 2) };
}

/** Values after all blocks, in order; the repository has those of some. */
function assertTraced(keys: readonly string[], expected: readonly string[]): void {
  assert.deepEqual(
    keys.filter((key) => expected.includes(key)),
    expected,
  );
  if (isWholeSet) assert.equal(keys.length, expected.length);
}

const isWhole = (image: Tensor): boolean => image.shape[1]! % 8 === 0 && image.shape[2]! % 8 === 0;

describe("VAE networks", () => {
  const folder = temporaryFolder();

  for (const name of CHECKPOINTS) {
    it(`decoder equals the reference for ${name}`, async () => {
      const { weights, config } = (await recognised(name, folder())).vae!;
      const { vae_decode: vectors, vae_trace: traced, tensor } = goldenLayers(name);
      const outputs = await runBuilt(
        weights,
        (network) => buildVaeDecoder(network, config),
        ...vectors.map(({ z }) => ({ z: tensor(z) })),
      );
      for (const [i, { raw }] of vectors.entries())
        assert.ok(layerError(outputs[i]!.image!, tensor(raw)) < TOLERANCE, raw);
      if (traced === undefined) return;
      let keys: string[] = [];
      const build = (network: Network): void => {
        const listener = traceTo(network);
        buildVaeDecoder(network, config, listener);
        ({ keys } = listener);
      };
      const [blocks] = await runBuilt(weights, build, { z: tensor(traced.z) });
      const expected = Object.keys(traced.after).filter((key) => key.startsWith("decoder."));
      assertTraced(keys, expected);
      for (const key of expected) assert.ok(layerError(blocks![key]!, tensor(traced.after[key]!)) < TOLERANCE, key);
    });

    it(`encoder equals the reference for ${name}`, async () => {
      const { weights, config } = (await recognised(name, folder())).vae!;
      const { vae_encode: vectors, vae_trace: traced, tensor } = goldenLayers(name);
      const whole = vectors.filter(({ image }) => isWhole(tensor(image)) && image !== QUIET);
      assert.ok(whole.length >= 1);
      let keys: string[] = [];
      const build = (network: Network): void => {
        const listener = traceTo(network);
        buildVaeEncoder(network, config, listener);
        ({ keys } = listener);
      };
      const inputs = [
        ...whole.map(({ image }) => asInput(tensor(image))),
        ...(traced === undefined ? [] : [tensor(traced.pixels)]),
      ];
      const outputs = await runBuilt(weights, build, ...inputs.map((image) => ({ image })));
      for (const [i, { latent, moments }] of whole.entries()) {
        assert.ok(layerError(outputs[i]!.latent!, tensor(latent)) < TOLERANCE, latent);
        if (moments !== undefined) assert.ok(layerError(outputs[i]!.quant_conv!, tensor(moments)) < TOLERANCE, moments);
      }
      if (traced === undefined) return;
      const expected = Object.keys(traced.after).filter((key) => key.startsWith("encoder."));
      assertTraced(keys, [...expected, "quant_conv"]);
      for (const key of expected)
        assert.ok(layerError(outputs.at(-1)![key]!, tensor(traced.after[key]!)) < TOLERANCE, key);
    });
  }

  it("equal the reference for latents of 16 channels, which have no layer between", async () => {
    const all = await flowWeights("vae/ae_tiny", folder());
    const vae = recogniseVae({ name: "ae.safetensors", metadata: {}, weights: all });
    assert.ok(vae.kind === "vae");
    const { config, weights } = vae.part;
    const { decode, encode, tensor } = flowLayers("flux_vae");
    const decoded = await runBuilt(
      weights,
      (network) => buildVaeDecoder(network, config),
      ...decode!.map(({ z }) => ({ z: tensor(z!) })),
    );
    for (const [i, { raw }] of decode!.entries())
      assert.ok(layerError(decoded[i]!.image!, tensor(raw!)) < TOLERANCE, raw);
    const encoded = await runBuilt(
      weights,
      (network) => buildVaeEncoder(network, config, { asImages: true }),
      ...encode!.map(({ image }) => ({ image: tensor(image!) })),
    );
    for (const [i, { latent }] of encode!.entries())
      assert.ok(layerError(encoded[i]!.latent!, tensor(latent!)) < TOLERANCE, latent);
  });

  it("encoder equals double precision if a norm's variance is near its epsilon @long", async () => {
    const { weights, config } = (await recognised("sd1_fp8", folder())).vae!;
    const values = new Map<string, Float32Array>();
    for (const [key, weight] of weights)
      if (!key.startsWith("decoder.")) values.set(key, Float32Array.from(await readValues(weight)));
    const image = asInput(goldenLayers("sd1_fp8").tensor(QUIET));
    const [output] = await runBuilt(weights, (network) => buildVaeEncoder(network, config), { image });
    const expected = naiveLatent((key) => values.get(key)!, config, pictureOf(image));
    assert.ok(layerError(output!.latent!, tensorOf(expected)) < TOLERANCE);
  });

  it("take and give images as nodes pass them if asked", async () => {
    const { weights, config } = (await recognised("sd1_fp8", folder())).vae!;
    const { vae_decode: decoded, vae_encode: encoded, tensor } = goldenLayers("sd1_fp8");
    const { z, image } = decoded[0]!;
    const decode = (network: Network): void => buildVaeDecoder(network, config, { asImages: true });
    const [picture] = await runBuilt(weights, decode, { z: tensor(z) });
    assert.ok(layerError(picture!.image!, tensor(image!)) < TOLERANCE);
    const encode = (network: Network): void => buildVaeEncoder(network, config, { asImages: true });
    const [latent] = await runBuilt(weights, encode, { image: tensor(encoded[1]!.image) });
    assert.ok(layerError(latent!.latent!, tensor(encoded[1]!.latent)) < TOLERANCE);
  });

  it("compute the same from a file of its own in diffusers' names, whose attention is linear", async () => {
    const z = goldenLayers("sd1_fp8").tensor("dec.0.z");
    const own = (await recognised("sd1_fp8", folder())).vae!.weights;
    const decoded = await Promise.all(
      [own, diffusersVae(own)].map(async (weights) => {
        const vae = recogniseVae({ name: "vae.safetensors", metadata: {}, weights });
        assert.ok(vae.kind === "vae");
        const { config } = vae.part;
        const [output] = await runBuilt(vae.part.weights, (network) => buildVaeDecoder(network, config), { z });
        return output!.image!;
      }),
    );
    assert.deepEqual(decoded[1]!.data, decoded[0]!.data);
  });
});
