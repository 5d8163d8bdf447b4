import assert from "node:assert/strict";
import { join } from "node:path";
import { randn, Tensor, type UpscaleModel } from "latentkit";
import {
  buildUpscaler,
  type CompactConfig,
  type RrdbConfig,
  type UpscalerConfig,
} from "#src/host/checkpoint/upscaler/build.js";
import { upscalerPart } from "#src/host/checkpoint/upscaler/recognise.js";
import { rejectsAs } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { runBuilt } from "../../../../helpers/models/built.js";
import { layerError } from "../../../../helpers/models/layers.js";
import {
  add,
  conv,
  enlarged,
  joined,
  leakyRelu,
  map,
  type Picture,
  pictureOf,
  tensorOf,
  type Weights,
} from "../../../../helpers/models/naive-layers.js";
import { noiseTensor } from "../../../../helpers/models/noise.js";
import { randomWeights, valuesOf } from "../../../../helpers/models/random-weights.js";
import { tinyHost } from "../../../../helpers/models/tiny-host.js";
import { weightFile, writeWeights } from "../../../../helpers/models/weight-file.js";

describe("CheckpointUpscaler", () => {
  const host = tinyHost();

  it("enlarges pictures as nodes pass them, each item of a batch as alone", async () => {
    const model: UpscaleModel = await host().loadFile!("upscale_models", "tiny-4x.safetensors");
    assert.equal(model.scale, 4);
    const images = randn([2, 9, 7, 3], { seed: 1 });
    const large = await model.upscale(images);
    assert.deepEqual([...large.shape], [2, 36, 28, 3]);
    const first = await model.upscale(Tensor.from(images.data.slice(0, 189), [1, 9, 7, 3]));
    assert.ok(layerError(Tensor.from(large.data.slice(0, first.size), first.shape), first) < 1e-5);
  });

  it("stops when it is interrupted", async () => {
    const model: UpscaleModel = await host().loadFile!("upscale_models", "tiny-4x.safetensors");
    const signal = AbortSignal.abort();
    await rejectsAs(signal, model.upscale(Tensor.zeros([1, 8, 8, 3]), signal));
  });
});

const TOLERANCE = 1e-5;

/** ESRGAN as published: RRDBNet of BasicSR. */
function rrdb(weights: Weights, config: RrdbConfig, image: Picture): Picture {
  const { channels, growth, blocks, doublings, unshuffle, scale } = config;
  const first = conv(weights, "conv_first", squaresAsChannels(image, unshuffle), channels);
  let x = first;
  for (let block = 0; block < blocks; block++) {
    let dense = x;
    for (let part = 1; part <= 3; part++) {
      const values = [dense];
      for (let layer = 1; layer <= 4; layer++)
        values.push(leakyRelu(conv(weights, `body.${block}.rdb${part}.conv${layer}`, joined(values), growth)));
      dense = add(dense, conv(weights, `body.${block}.rdb${part}.conv5`, joined(values), channels), 0.2);
    }
    x = add(x, dense, 0.2);
  }
  x = add(first, conv(weights, "conv_body", x, channels));
  for (let step = 1; step <= doublings; step++)
    x = leakyRelu(conv(weights, `conv_up${step}`, enlarged(x, 2), channels));
  const result = conv(weights, "conv_last", leakyRelu(conv(weights, "conv_hr", x, channels)), 3);
  const [height, width] = [image.height * scale, image.width * scale];
  const data = Float64Array.from({ length: 3 * height * width }, (_, i) => {
    const [channel, row, column] = [Math.floor(i / (height * width)), Math.floor(i / width) % height, i % width];
    return result.data[(channel * result.height + row) * result.width + column]!;
  });
  return { channels: 3, height, width, data };
}

/** Pixel unshuffle of a picture that is mirrored at its right and lower edge. */
function squaresAsChannels(x: Picture, side: number): Picture {
  const [height, width] = [x.height, x.width].map((length) => Math.ceil(length / side)) as [number, number];
  const mirrored = (index: number, length: number): number =>
    index < length ? index : Math.max(0, 2 * (length - 1) - index);
  const channels = x.channels * side * side;
  const data = Float64Array.from({ length: channels * height * width }, (_, i) => {
    const [out, row, column] = [Math.floor(i / (height * width)), Math.floor(i / width) % height, i % width];
    const [channel, place] = [Math.floor(out / (side * side)), out % (side * side)];
    const y = mirrored(row * side + Math.floor(place / side), x.height);
    return x.data[(channel * x.height + y) * x.width + mirrored(column * side + (place % side), x.width)]!;
  });
  return { channels, height, width, data };
}

/** RealESRGAN's compact network as published: SRVGGNetCompact. */
function compact(weights: Weights, { channels, convolutions, scale }: CompactConfig, image: Picture): Picture {
  let x = image;
  for (let layer = 0; layer <= convolutions; layer++) {
    x = conv(weights, `body.${2 * layer}`, x, channels);
    const slope = weights(`body.${2 * layer + 1}.weight`);
    const cells = x.height * x.width;
    x = map(x, (value, i) => (value < 0 ? value * slope[Math.floor(i / cells)]! : value));
  }
  x = conv(weights, `body.${2 * convolutions + 2}`, x, 3 * scale * scale);
  return map(enlarged(image, scale), (base, i) => {
    const [height, width] = [image.height * scale, image.width * scale];
    const [channel, row, column] = [Math.floor(i / (height * width)), Math.floor(i / width) % height, i % width];
    const from = channel * scale * scale + (row % scale) * scale + (column % scale);
    return base + x.data[(from * x.height + Math.floor(row / scale)) * x.width + Math.floor(column / scale)]!;
  });
}

const RRDB: RrdbConfig = { kind: "rrdb", channels: 6, growth: 3, blocks: 2, doublings: 2, unshuffle: 1, scale: 4 };
const CONFIGS: Readonly<Record<string, UpscalerConfig>> = {
  "ESRGAN x4": RRDB,
  "ESRGAN x2": { ...RRDB, doublings: 1, scale: 2 },
  "ESRGAN x1": { ...RRDB, doublings: 0, scale: 1 },
  "RealESRGAN x2": { ...RRDB, unshuffle: 2, scale: 2 },
  "RealESRGAN x1": { ...RRDB, unshuffle: 4, scale: 1 },
  "compact x4": { kind: "compact", channels: 5, convolutions: 3, scale: 4 },
  "compact x1": { kind: "compact", channels: 5, convolutions: 2, scale: 1 },
};

describe("buildUpscaler", () => {
  const folder = temporaryFolder();

  for (const [name, config] of Object.entries(CONFIGS))
    it(`computes the published layers of ${name}`, async () => {
      const tensors = randomWeights((network) => buildUpscaler(network, config));
      const weights: Weights = (key) => valuesOf(tensors[key]!);
      const file = await weightFile(writeWeights(join(folder(), "u.safetensors"), tensors));
      const part = upscalerPart(file);
      assert.deepEqual(part.config, config);
      // sides that are not a multiple of a square, even shorter than it
      for (const sides of [
        [5, 6],
        [1, 2],
      ]) {
        const image = noiseTensor([1, 3, ...sides]);
        const [output] = await runBuilt(part.weights, (network) => buildUpscaler(network, part.config), { image });
        const naive =
          config.kind === "rrdb" ? rrdb(weights, config, pictureOf(image)) : compact(weights, config, pictureOf(image));
        assert.ok(layerError(output!.enlarged!, tensorOf(naive)) < TOLERANCE);
      }
    });
});
