import assert from "node:assert/strict";
import { buildTaesdDecoder, buildTaesdEncoder } from "#src/host/checkpoint/networks/taesd.js";
import { taesdPart, taesdScale } from "#src/host/checkpoint/recognition/taesd.js";
import { recogniseVae } from "#src/host/checkpoint/recognition/vae.js";
import { listedNetwork } from "#src/host/checkpoint/weights/network.js";
import { refuses } from "../../../../helpers/errors.js";
import { fullSizeShapes, headerOf, type Shapes, withKeys } from "../../../../helpers/models/full-size.js";

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

describe("taesdPart", () => {
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

  it("reads those of Flux, which decode previews and are no VAE of a graph", async () => {
    const file = headerOf(shapesOf(16));
    assert.deepEqual(taesdPart(file)!.config, { ...CONFIG, latentChannels: 16 });
    await refuses(
      () => recogniseVae(file),
      "model.unsupported",
      /tiny autoencoder of Flux, which decodes previews alone/,
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
