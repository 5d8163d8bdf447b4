import assert from "node:assert/strict";
import { join } from "node:path";
import { buildTaesdDecoder, buildTaesdEncoder, type TaesdConfig } from "#src/host/checkpoint/networks/taesd.js";
import { taesdPart } from "#src/host/checkpoint/recognition/taesd.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { runBuilt } from "../../../../helpers/models/built.js";
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

describe("TAESD networks", () => {
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
