import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { buildVaeDecoder, buildVaeEncoder, type VaeConfig } from "#src/host/checkpoint/vae/build.js";
import { recogniseVae } from "#src/host/checkpoint/vae/recognise.js";
import type { Network } from "#src/host/checkpoint/weights/network.js";
import type { WeightMap } from "#src/host/checkpoint/weights/stored.js";
import { intoModel, outOfModel } from "#src/host/sampling/latent-space.js";
import { modelSampling } from "#src/tensor/sampling/model-sampling.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { runBuilt } from "../../../../helpers/models/built.js";
import { flowShapes } from "../../../../helpers/models/flow-shapes.js";
import { headerOf, type Shapes, withKeys } from "../../../../helpers/models/full-size.js";
import { flowLayers, flowWeights } from "../../../../helpers/models/golden-flow.js";
import { layerError } from "../../../../helpers/models/layers.js";

const TOLERANCE = 5e-6;
const CONFIG: VaeConfig = {
  family: "wan",
  channels: 96,
  encoderChannels: 96,
  multipliers: [1, 2, 4, 4],
  blocks: 2,
  latentChannels: 16,
  normalised: false,
  quantised: true,
  attention: 4,
  hasEncoder: true,
};
/** The values that the vectors have, under the keys of our builder. */
const TRACED: Readonly<Record<string, string>> = {
  "decoder.conv_in": "decoder.conv1",
  "decoder.mid.block_1": "decoder.middle.0",
  "decoder.mid.attn_1": "decoder.middle.1",
  "decoder.mid.block_2": "decoder.middle.2",
  "decoder.up.3.block.2": "decoder.upsamples.2",
  "decoder.up.3.upsample": "decoder.upsamples.3",
  "decoder.up.2.upsample": "decoder.upsamples.7",
  "decoder.up.1.upsample": "decoder.upsamples.11",
  "decoder.up.0.block.2": "decoder.upsamples.14",
  "encoder.conv_in": "encoder.conv1",
  "encoder.down.0.block.1": "encoder.downsamples.1",
  "encoder.down.0.downsample": "encoder.downsamples.2",
  "encoder.down.1.downsample": "encoder.downsamples.5",
  "encoder.down.2.downsample": "encoder.downsamples.8",
  "encoder.down.3.block.1": "encoder.downsamples.10",
  "encoder.mid.block_2": "encoder.middle.2",
};
const SHAPES = flowShapes("wan vae");
const partOf = (shapes: Shapes) => recogniseVae(headerOf(shapes)).part;
/** Name of a layer in diffusers. */
function diffusersName(key: string): string {
  const layers = { "residual.0": "norm1", "residual.2": "conv1", "residual.3": "norm2", "residual.6": "conv2" };
  const inBlock = Object.entries({ ...layers, shortcut: "conv_shortcut" }).reduce(
    (name, [own, other]) => name.replace(`.${own}.`, `.${other}.`),
    key,
  );
  return inBlock
    .replace(/^conv1\./, "quant_conv.")
    .replace(/^conv2\./, "post_quant_conv.")
    .replace(/^((?:en|de)coder)\.conv1\./, "$1.conv_in.")
    .replace(".head.0.", ".norm_out.")
    .replace(".head.2.", ".conv_out.")
    .replace(/\.middle\.([02])\./, (_, block) => `.mid_block.resnets.${Number(block) / 2}.`)
    .replace(".middle.1.", ".mid_block.attentions.0.")
    .replace(".downsamples.", ".down_blocks.")
    .replace(/\.upsamples\.(\d+)\./, (_, index) => {
      const [step, block] = [Math.floor(Number(index) / 4), Number(index) % 4];
      return `.up_blocks.${step}.${block === 3 ? "upsamplers.0" : `resnets.${block}`}.`;
    });
}

/** A vector [B, C, 1, h, w] or [B, 1, H, W, 3] without its axis of frames. */
const ofOneFrame = ({ data, shape }: Tensor): Tensor => {
  const axis = shape[1] === 1 ? 1 : 2;
  return Tensor.from(data, shape.length === 5 ? [...shape.slice(0, axis), ...shape.slice(axis + 1)] : shape);
};

describe("the VAE of Wan 2.1 and Qwen-Image", () => {
  const folder = temporaryFolder();
  const { decode, encode, tensor, ...others } = flowLayers("wan_vae");
  const part = async (): Promise<{ config: VaeConfig; weights: WeightMap }> => {
    const weights = await flowWeights("vae/qwen_image_vae_tiny", folder());
    const vae = recogniseVae({ name: "qwen_image_vae.safetensors", metadata: {}, weights });
    assert.ok(vae.kind === "vae");
    return vae.part;
  };
  const assertEqual = (actual: Tensor, name: string): void => {
    const error = layerError(actual, ofOneFrame(tensor(name)));
    assert.ok(error < TOLERANCE, `${name}: ${error}`);
  };
  /** Adds the traced values of the first vector to a graph's outputs, and compares them. */
  const traced = (after: Readonly<Record<string, string>>) => {
    const own = Object.entries(TRACED).filter(([, name]) => after[name] !== undefined);
    return {
      trace: (network: Network) => (key: string, value: Parameters<Network["graph"]["output"]>[0]) => {
        if (own.some(([name]) => name === key)) network.graph.output(value, key, "float", ["b", "c", `h ${key}`, "w"]);
      },
      check: (outputs: Readonly<Record<string, Tensor>>) => {
        assert.ok(own.length > 6);
        for (const [key, name] of own) assertEqual(outputs[key]!, after[name]!);
      },
    };
  };

  it("decodes as the reference does, after every part too", async () => {
    const { config, weights } = await part();
    const first = traced(decode![0]!.after as unknown as Record<string, string>);
    const outputs = await runBuilt(
      weights,
      (network) => buildVaeDecoder(network, config, { trace: first.trace(network) }),
      ...decode!.map(({ z }) => ({ z: ofOneFrame(tensor(z!)) })),
    );
    for (const [i, { raw }] of decode!.entries()) assertEqual(outputs[i]!.image!, raw!);
    first.check(outputs[0]!);
    const build = (network: Network): void => buildVaeDecoder(network, config, { asImages: true });
    const [picture] = await runBuilt(weights, build, { z: ofOneFrame(tensor(decode![0]!.z!)) });
    assertEqual(picture!.image!, decode![0]!.image!);
  });

  it("encodes as the reference does, after every part too", async () => {
    const { config, weights } = await part();
    const first = traced(encode![0]!.after as unknown as Record<string, string>);
    const outputs = await runBuilt(
      weights,
      (network) => buildVaeEncoder(network, config, { asImages: true, trace: first.trace(network) }),
      ...encode!.map(({ image }) => ({ image: tensor(image!) })),
    );
    for (const [i, { latent }] of encode!.entries()) assertEqual(outputs[i]!.latent!, latent!);
    first.check(outputs[0]!);
  });

  it("has latents with figures for each channel", () => {
    const { format } = others as unknown as { format: Readonly<Record<string, string>> };
    const sampling = modelSampling("qwen-image");
    const x = ofOneFrame(tensor(format.x!));
    assertEqual(intoModel(x, sampling), format.process_in!);
    assertEqual(outOfModel(x, sampling), format.process_out!);
  });

  it("is read in full size, under each prefix, without its layers between frames", () => {
    for (const prefix of ["", "vae.", "first_stage_model."]) {
      const { config, weights } = partOf(withKeys(SHAPES, (key) => prefix + key));
      assert.deepEqual(config, CONFIG);
      assert.equal(weights.size, Object.keys(SHAPES).filter((key) => !key.includes("time_conv")).length);
    }
    const decoder = withKeys(SHAPES, (key) => (/^(encoder|conv1)\./.test(key) ? undefined : key));
    assert.deepEqual(partOf(decoder).config, { ...CONFIG, hasEncoder: false });
  });

  it("is the same in the layout of diffusers", async () => {
    for (const prefix of ["", "vae."]) {
      const own = partOf(SHAPES);
      const { config, weights } = partOf(withKeys(SHAPES, (key) => prefix + diffusersName(key)));
      assert.deepEqual(config, own.config);
      assert.deepEqual(
        [...weights].map(([key, weight]) => [key, weight.key]).sort(),
        [...own.weights].map(([key, weight]) => [key, prefix + diffusersName(weight.key)]).sort(),
      );
    }
    const damaged = withKeys(SHAPES, (key) =>
      key === "encoder.downsamples.3.shortcut.bias" ? undefined : diffusersName(key),
    );
    await refuses(() => partOf(damaged), "model.invalid", /weight "encoder\.down_blocks\.3\.conv_shortcut\.bias"/);
  });

  it("is refused if it is another one, by name, or damaged, with the key of the file", async () => {
    const cases: [Shapes, "model.unsupported" | "model.invalid", RegExp][] = [
      [
        { "decoder.upsamples.0.upsamples.0.residual.2.weight": [1024, 1024, 3, 3, 3] },
        "model.unsupported",
        /one of Wan 2\.2/,
      ],
      [{ ...SHAPES, "decoder.conv1.weight": [384, 48, 3, 3, 3] }, "model.unsupported", /with 48 latent channels/],
      [{ ...SHAPES, "decoder.upsamples.2.extra.weight": [1] }, "model.unsupported", /unknown weight "decoder\.ups/],
      [
        { ...SHAPES, "decoder.head.0.gamma": [96] },
        "model.invalid",
        /"decoder\.head\.0\.gamma" of shape \[96, 1, 1, 1\]/,
      ],
      [
        { ...SHAPES, "encoder.downsamples.3.shortcut.bias": [96] },
        "model.invalid",
        /"encoder\.downsamples\.3\.shortcut\.bias" of shape \[192\]/,
      ],
      [{ ...SHAPES, "decoder.head.2.weight": [3, 96, 3, 3] }, "model.invalid", /"decoder\.head\.2\.weight" of 5 sides/],
    ];
    for (const [shapes, code, pattern] of cases) await refuses(() => partOf(shapes), code, pattern);
  });
});
