import assert from "node:assert/strict";
import { type Conditioning, modelSampling, Tensor } from "latentkit";
import type { IpAdapterPart } from "#src/host/checkpoint/ip-adapter/recognise.js";
import { ipAdapterPart } from "#src/host/checkpoint/ip-adapter/recognise.js";
import type { AdapterUse } from "#src/host/checkpoint/ip-adapter/use.js";
import type { ModelPart } from "#src/host/checkpoint/session/model-part.js";
import type { UnetConfig } from "#src/host/checkpoint/unet/build.js";
import { adapterAttention, placesOf } from "#src/host/checkpoint/unet/image-adapters.js";
import { RunAdapters } from "#src/host/checkpoint/unet/run-adapters.js";
import { layerWeights } from "#src/nodes/ipadapter/weights.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { runBuilt } from "../../../../helpers/models/built.js";
import { adapterFile, adapterLayers } from "../../../../helpers/models/golden-adapters.js";
import { layerError } from "../../../../helpers/models/layers.js";
import { someContext } from "../../../../helpers/models/tiny-host.js";

const { attention, image_proj, tensor } = adapterLayers();
const [negative, positive] = [someContext(1), someContext(2)].map((tokens) => [tokens, {}] as Conditioning[number]);

/** A UNet whose pictures are never halved, with a transformer in one block. */
function configWith(key: string, channels: number): UnetConfig {
  const [side, number] = key.split(".") as [string, string];
  const block = (index: number, of: string) => ({
    kind: "res" as const,
    channels,
    depth: side === of && index === Number(number) ? 1 : 0,
    upsample: false,
  });
  const blocks = (of: string) => Array.from({ length: 12 }, (_, index) => block(index, of));
  return { input: blocks("input_blocks"), output: blocks("output_blocks") } as unknown as UnetConfig;
}

/** The key of a transformer by the number of its first layer. */
const KEYS: Readonly<Record<string, string>> = {
  "sd1 1": "input_blocks.1.1",
  "sd1 17": "output_blocks.5.1",
  "sdxl 1": "input_blocks.4.1",
  "sdxl 89": "output_blocks.2.1",
};

const useOf = ({ keys, isSdxl }: IpAdapterPart, changes: Partial<AdapterUse>): AdapterUse => ({
  keys: { config: keys.config, label: "IPAdapter" } as unknown as ModelPart<typeof keys.config>,
  isSdxl,
  tokens: Tensor.zeros([1, 1, 1]),
  negativeTokens: Tensor.zeros([1, 1, 1]),
  isPerLatent: false,
  weights: [],
  isSwapped: false,
  hasMiddle: false,
  scaling: "V only",
  start: 0,
  end: 1,
  maskMethod: "bilinear",
  ...changes,
});

describe("adapterAttention", () => {
  const folder = temporaryFolder();
  // of full-face adapters only some tokens are given
  for (const each of attention.filter(({ adapter }: { adapter: string }) => !adapter.includes("full-face")))
    it(`${each.adapter}, layer ${each.layer}, ${each.weight_type} ${each.weight}, ${each.embeds_scaling}${each.mask ? ", masked" : ""}, as the reference`, async () => {
      const part = ipAdapterPart(await adapterFile(`ipadapter/${each.adapter}`, folder()));
      const { isSdxl, keys } = part;
      const query = tensor(each.q);
      const width = query.shape[2]!;
      const key = KEYS[`${isSdxl ? "sdxl" : "sd1"} ${each.layer}`]!;
      const config = configWith(key, width);
      const proj = image_proj.find((one: { adapter: string }) => one.adapter === each.adapter);
      const weight = layerWeights(each.weight_type, each.weight, isSdxl).plain[each.transformer_index]!;
      const use = useOf(part, {
        tokens: wholeTokens(proj.cond),
        negativeTokens: wholeTokens(proj.uncond),
        weights: new Array(isSdxl ? 11 : 16).fill(weight),
        scaling: each.embeds_scaling,
        mask: each.mask && asMask(tensor(each.mask)),
      });
      const run = {
        sampling: modelSampling("sd15"),
        latent: Tensor.zeros([1, 4, 1, 1]),
        negative: [negative!],
        steps: 1,
      };
      const x = Tensor.zeros([2, 4, ...each.latent]);
      const feeds = new RunAdapters([use], config, run).of({ x, entries: [negative!, positive!], sigma: 1 });
      const build = (network: Parameters<typeof adapterAttention>[0][number]) => {
        const { graph } = network;
        const layout = { network: 0, keys: keys.config, isSdxl, hasMiddle: false };
        const further = adapterAttention([network], [layout], config);
        const q = graph.input("query", "float", ["B", "L", width]);
        graph.output(further(key, 0, q, { width, heads: each.heads })!, "out", "float", ["B", "L", width]);
      };
      const [{ out }] = (await runBuilt(keys.weights, build, { query, ...feeds })) as [Record<string, Tensor>];
      assert.ok(layerError(out!, tensor(each.out)) < 1e-5);
    });
});

const wholeTokens = (name: string): Tensor => {
  const x = tensor(name);
  return x.shape.length === 2 ? x.reshape([1, ...x.shape]) : x;
};

const asMask = (mask: Tensor): Tensor => (mask.shape.length === 2 ? mask.reshape([1, ...mask.shape]) : mask);

describe("placesOf", () => {
  it("numbers the transformers of SDXL as its files do, even if some are shallower", () => {
    const places = placesOf(configWith("output_blocks.5", 64), true);
    assert.deepEqual(
      [...places],
      [["output_blocks.5.1", { channels: 64, level: 0, depth: 1, layer: 117, layers: 2, index: 10, isMiddle: false }]],
    );
  });
});
