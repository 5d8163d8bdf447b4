import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { buildFlux } from "#src/host/checkpoint/flux/build.js";
import type { FluxConfig } from "#src/host/checkpoint/flux/config.js";
import { OnnxGraph, type Value } from "#src/host/checkpoint/onnx/graph.js";
import { CPU_TARGET, type Target } from "#src/host/checkpoint/onnx/target.js";
import { withFactors } from "#src/host/checkpoint/weights/factors.js";
import { networkOf } from "#src/host/checkpoint/weights/network.js";
import type { WeightMap } from "#src/host/checkpoint/weights/stored.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { FLUX_DEV, fluxFeeds, latentOf } from "../../../../helpers/models/flux-feeds.js";
import { fluxLayers, fluxWeights } from "../../../../helpers/models/golden-flux.js";
import { layerError } from "../../../../helpers/models/layers.js";
import { graphSession } from "../../../../helpers/models/session.js";

const SCHNELL: FluxConfig = { ...FLUX_DEV, width: 64, heads: 2, mlp: 256, singleBlocks: 1, hasGuidance: false };
const FORMS: readonly (readonly [string, Target])[] = [
  ["fused", CPU_TARGET],
  ["plain", { attention: "plain", largestHead: 256, matMul: "transposed", convChannels: "fours", halfTypes: [] }],
];
const TOLERANCE = 5e-6;

describe("buildFlux", () => {
  const folder = temporaryFolder();
  const layers = fluxLayers();
  const { tensor } = layers;

  const files: readonly [cases: string, config: FluxConfig, load: () => Promise<WeightMap>][] = [
    ["flux_dev", FLUX_DEV, () => fluxWeights("diffusion_models/flux_dev", folder())],
    ["flux_fill", { ...FLUX_DEV, inputs: 384 }, fillWeights],
    ["flux_schnell", SCHNELL, schnellWeights],
    ["flux_dev_fp8_scaled", FLUX_DEV, scaledWeights],
  ];
  for (const [cases, config, load] of files)
    for (const [form, target] of FORMS)
      it(`computes what the reference does for ${cases}, ${form}`, async () => {
        const graph = new OnnxGraph("flux", target);
        buildFlux(networkOf(graph, await load()), config);
        const session = await graphSession(graph.encode({ overridable: false }));
        for (const each of layers[cases]) {
          const { out } = await session.run(fluxFeeds(each, config, tensor));
          const expected = tensor(each.out);
          const picture = latentOf(out!, expected, config);
          assert.ok(layerError(picture, expected) < TOLERANCE, each.out);
        }
        await session.release();
      });

  it("has the reference's value after every part", async () => {
    const graph = new OnnxGraph("flux");
    const expected = expectedOf(layers.trace.after);
    const traced: string[] = [];
    buildFlux(networkOf(graph, await fluxWeights("diffusion_models/flux_dev", folder())), FLUX_DEV, (name, value) => {
      if (expected[name] === undefined) return;
      traced.push(name);
      const out = name.endsWith("query_norm") ? byHead(graph, value) : value;
      graph.output(out, name, "float", tensor(expected[name]).shape);
    });
    assert.deepEqual(new Set(traced), new Set(Object.keys(expected)));
    const session = await graphSession(graph.encode({ overridable: false }));
    const outputs = await session.run(fluxFeeds(layers.trace, FLUX_DEV, tensor));
    for (const name of traced) assert.ok(layerError(outputs[name]!, tensor(expected[name]!)) < TOLERANCE, name);
    await session.release();
  });

  it("leaves a guidance out for the items that take none", async () => {
    const weights = await fluxWeights("diffusion_models/flux_dev", folder());
    const run = async (config: FluxConfig, guided: number): Promise<Tensor> => {
      const graph = new OnnxGraph("flux");
      buildFlux(networkOf(graph, weights), config);
      const session = await graphSession(graph.encode({ overridable: false }));
      const feeds = fluxFeeds(layers.flux_dev[1], config, tensor);
      const { out } = await session.run(
        config.hasGuidance ? { ...feeds, guided: Tensor.from([1, guided], [2]) } : feeds,
      );
      await session.release();
      return out!;
    };
    const items = (value: Tensor): Tensor[] =>
      [0, 1].map((item) =>
        Tensor.from(value.data.subarray((item * value.size) / 2, ((item + 1) * value.size) / 2), [value.size / 2]),
      );
    const [both, first, none] = [
      await run(FLUX_DEV, 1),
      await run(FLUX_DEV, 0),
      await run({ ...FLUX_DEV, hasGuidance: false }, 0),
    ].map(items);
    assert.ok(layerError(first![0]!, both![0]!) < TOLERANCE);
    assert.ok(layerError(first![1]!, none![1]!) < TOLERANCE);
    assert.ok(layerError(first![1]!, both![1]!) > 1e-3);
  });

  it("refuses a file without one of its weights", async () => {
    const weights = new Map(await fluxWeights("diffusion_models/flux_dev", folder()));
    weights.delete("single_blocks.1.linear2.bias");
    const network = networkOf(new OnnxGraph("flux"), weights);
    await refuses(() => buildFlux(network, FLUX_DEV), "model.invalid", /"single_blocks\.1\.linear2\.bias" is missing/);
  });

  async function fillWeights(): Promise<WeightMap> {
    const dev = await fluxWeights("diffusion_models/flux_dev", folder());
    return new Map([...dev, ...(await fluxWeights("diffusion_models/flux_fill_img_in", folder()))]);
  }

  async function schnellWeights(): Promise<WeightMap> {
    const all = await fluxWeights("checkpoints/flux_schnell_part", folder());
    return new Map([...all].map(([key, weight]) => [key.replace("model.diffusion_model.", ""), weight]));
  }

  async function scaledWeights(): Promise<WeightMap> {
    const name = "diffusion_models/flux_dev_fp8_scaled";
    const state = { name, path: folder(), bytes: 0, modifiedNs: 0n, inode: 0n, metadata: {} };
    return (await withFactors({ ...state, weights: await fluxWeights(name, folder()) })).weights;
  }
});

/** [1, L, heads · size] as [1, heads, L, size]. */
function byHead(graph: OnnxGraph, value: Value): Value {
  const heads = graph.node("Reshape", [value, graph.ints([1, 0, FLUX_DEV.heads, FLUX_DEV.headSize])]);
  return graph.node("Transpose", [heads], { perm: { ints: [0, 2, 1, 3] } });
}

/** Names of tensors by part; those of the positions are checked elsewhere. */
function expectedOf(after: Record<string, string | [string, string]>): Record<string, string> {
  const names = Object.entries(after).filter(([part]) => part !== "ids" && part !== "pe");
  return Object.fromEntries(
    names.flatMap(([part, name]) =>
      typeof name === "string"
        ? [[part, name]]
        : [
            [`${part}.img`, name[0]],
            [`${part}.txt`, name[1]],
          ],
    ),
  );
}
