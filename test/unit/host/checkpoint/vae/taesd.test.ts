import assert from "node:assert/strict";
import { join } from "node:path";
import { recogniseVae } from "#src/host/checkpoint/vae/recognise.js";
import {
  buildTaesdDecoder,
  buildTaesdEncoder,
  type TaesdConfig,
  taesdPart,
  taesdScale,
} from "#src/host/checkpoint/vae/taesd.js";
import { listedNetwork } from "#src/host/checkpoint/weights/network.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { runBuilt } from "../../../../helpers/models/built.js";
import { fullSizeShapes, headerOf, type Shapes, withKeys } from "../../../../helpers/models/full-size.js";
import { layerError } from "../../../../helpers/models/layers.js";
import {
  add,
  conv,
  enlarged,
  map,
  type Picture,
  pictureOf,
  relu,
  tensorOf,
  type Weights,
} from "../../../../helpers/models/naive-layers.js";
import { noiseTensor } from "../../../../helpers/models/noise.js";
import { randomWeights, valuesOf } from "../../../../helpers/models/random-weights.js";
import { weightFile, writeWeights } from "../../../../helpers/models/weight-file.js";

describe("TAESD networks", () => {
  const CONFIG: TaesdConfig = { channels: 8, latentChannels: 4, hasDecoder: true, hasEncoder: true };
  const TOLERANCE = 1e-5;

  /** The published layers by number: C a convolution, D one that halves the sides, B a block, U doubles, R is relu. */
  function run(weights: Weights, half: string, layers: string, channels: number, x: Picture): Picture {
    const block = (key: string, value: Picture): Picture => {
      const first = relu(conv(weights, `${key}.conv.0`, value, channels));
      const second = relu(conv(weights, `${key}.conv.2`, first, channels));
      return relu(add(conv(weights, `${key}.conv.4`, second, channels), value));
    };
    const last = layers.length - 1;
    const outputs = half === "taesd_decoder" ? 3 : 4;
    return [...layers].reduce((value, layer, number) => {
      const key = `${half}.${number}`;
      if (layer === "T") return map(value, (each) => 3 * Math.tanh(each / 3));
      if (layer === "B") return block(key, value);
      if (layer === "U") return enlarged(value, 2);
      if (layer === "R") return relu(value);
      if (layer === "D") return conv(weights, key, value, channels, { stride: 2, bias: false });
      return conv(weights, key, value, number === last ? outputs : channels, { bias: layer === "C" });
    }, x);
  }

  const folder = temporaryFolder();
  const tensors = randomWeights((network) => {
    buildTaesdDecoder(network, CONFIG);
    buildTaesdEncoder(network, CONFIG);
  });
  const weights: Weights = (key) => valuesOf(tensors[key]!);

  it("compute the published layers", async () => {
    const file = await weightFile(writeWeights(join(folder(), "taesd.safetensors"), tensors));
    const part = taesdPart(file)!;
    assert.deepEqual(part.config, CONFIG);
    const z = noiseTensor([1, 4, 5, 3]);
    const [decoded] = await runBuilt(part.weights, (network) => buildTaesdDecoder(network, part.config), { z });
    // N is a convolution without bias
    const naive = run(weights, "taesd_decoder", "TCRBBBUNBBBUNBBBUNBC", 8, pictureOf(z));
    assert.ok(layerError(decoded!.image!, tensorOf(naive)) < TOLERANCE);
    const image = noiseTensor([1, 3, 24, 40]);
    const [encoded] = await runBuilt(part.weights, (network) => buildTaesdEncoder(network, part.config), { image });
    const latent = run(weights, "taesd_encoder", "CBDBBBDBBBDBBBC", 8, pictureOf(image));
    assert.ok(layerError(encoded!.latent!, tensorOf(latent)) < TOLERANCE);
  });
});

describe("taesdPart", () => {
  const CONFIG = { channels: 64, latentChannels: 4, hasDecoder: true, hasEncoder: true };

  function shapesOf(latentChannels = 4): Shapes {
    const network = listedNetwork();
    buildTaesdDecoder(network, { ...CONFIG, latentChannels });
    buildTaesdEncoder(network, { ...CONFIG, latentChannels });
    return Object.fromEntries(network.listed);
  }

  const half = (name: string, prefix: string, shift = 0): Shapes =>
    withKeys(shapesOf(), (key) => {
      const [side, number, ...rest] = key.split(".");
      return side === name ? [`${prefix}${Number(number) + shift}`, ...rest].join(".") : undefined;
    });

  it("reads both halves, each half alone, and diffusers' names", () => {
    assert.deepEqual(taesdPart(headerOf(shapesOf()))!.config, CONFIG);
    const decoder = half("taesd_decoder", "");
    const encoder = half("taesd_encoder", "");
    assert.deepEqual(taesdPart(headerOf(decoder))!.config, { ...CONFIG, hasEncoder: false });
    assert.deepEqual(taesdPart(headerOf(encoder))!.config, { ...CONFIG, hasDecoder: false });
    const diffusers = { ...half("taesd_decoder", "decoder.layers.", -1), ...half("taesd_encoder", "encoder.layers.") };
    const { config, weights } = taesdPart(headerOf(diffusers))!;
    assert.deepEqual(config, CONFIG);
    assert.ok(weights.has("taesd_decoder.1.weight"));
  });

  it("reads those of Flux, which decode previews and are not the VAE of a graph", async () => {
    const file = headerOf(shapesOf(16));
    assert.deepEqual(taesdPart(file)!.config, { ...CONFIG, latentChannels: 16 });
    await refuses(
      () => recogniseVae(file),
      "model.unsupported",
      /tiny autoencoder of Flux, which only decodes previews/,
    );
  });

  it("is undefined for other files", () => {
    assert.equal(taesdPart(headerOf(fullSizeShapes().sd1)), undefined);
  });

  it("reads the factor of its latents, and refuses a shift by its key", async () => {
    const read = async ({ key }: { key: string }) => [key === "vae_scale" ? 0.25 : 0.5];
    const file = (marks: Shapes) => headerOf({ ...shapesOf(), ...marks });
    assert.equal(await taesdScale(file({}), read), 1);
    assert.equal(await taesdScale(file({ vae_scale: [] }), read), 0.25);
    assert.equal(await taesdScale(file({ vae_scale: [], vae_shift: [] }), async () => [0]), 0);
    await refuses(taesdScale(file({ vae_shift: [1] }), read), "model.unsupported", /"vae_shift" other than 0/);
    await refuses(taesdScale(file({ vae_scale: [2] }), read), "model.invalid", /"vae_scale" of one finite number/);
  });

  it("refuses other latents and damaged files", async () => {
    await refuses(() => taesdPart(headerOf(shapesOf(8))), "model.unsupported", /8 latent channels/);
    const decoder = half("taesd_decoder", "");
    const damaged = { ...decoder, "8.conv.2.weight": [64, 64, 3, 1] };
    await refuses(
      () => taesdPart(headerOf(damaged)),
      "model.invalid",
      /"8\.conv\.2\.weight" of shape \[64, 64, 3, 3\]/,
    );
    await refuses(() => taesdPart(headerOf({ ...decoder, "20.weight": [3] })), "model.unsupported", /"20\.weight"/);
  });
});
