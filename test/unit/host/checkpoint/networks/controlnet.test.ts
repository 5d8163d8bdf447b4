import assert from "node:assert/strict";
import { join } from "node:path";
import { randn, Tensor } from "latentkit";
import { buildControlNet } from "#src/host/checkpoint/networks/controlnet.js";
import { buildUnet } from "#src/host/checkpoint/networks/unet.js";
import { OnnxGraph } from "#src/host/checkpoint/onnx/graph.js";
import { listedNetwork, networkOf } from "#src/host/checkpoint/weights/network.js";
import type { WeightMap } from "#src/host/checkpoint/weights/stored.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { goldenNames, isWholeSet, unpackModel } from "../../../../helpers/models/golden.js";
import { goldenLayers, layerError, unetFeeds } from "../../../../helpers/models/layers.js";
import { randomWeights } from "../../../../helpers/models/random-weights.js";
import { graphSession } from "../../../../helpers/models/session.js";
import { under, unetConfigOf } from "../../../../helpers/models/unet-config.js";
import { weightFile, writeWeights } from "../../../../helpers/models/weight-file.js";

/** Outputs of a net under the names that the UNet has for its first one. */
const ofFirstNet = (outputs: Record<string, Tensor>): Record<string, Tensor> =>
  Object.fromEntries(Object.entries(outputs).map(([name, value]) => [`${name}.0`, value]));

describe("buildControlNet", () => {
  const folder = temporaryFolder();
  const unetWeights = async () =>
    under("model.diffusion_model.", (await weightFile(unpackModel("checkpoints/sd1_fp8", folder()))).weights);
  /** A random net for the golden UNet. */
  const controlWeights = async () => {
    const config = configOf(await unetWeights());
    const tensors = randomWeights((network) => buildControlNet(network, config));
    return (await weightFile(writeWeights(join(folder(), "control.safetensors"), tensors))).weights;
  };
  const configOf = (weights: WeightMap) =>
    unetConfigOf(new Map([...weights].map(([key, { shape }]) => [key, shape] as const)));

  const names = goldenNames("controlnet");
  it("has the golden files at hand", () => assert.deepEqual(names, isWholeSet ? ["sd1_control"] : []));

  for (const name of names)
    it(`asks for every weight of the golden ${name} and no other, each in its shape`, async () => {
      const file = await weightFile(unpackModel(`controlnet/${name}`, folder()));
      const weights = under("control_model.", file.weights);
      const network = listedNetwork();
      buildControlNet(network, configOf(weights));
      const order = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]) => (a < b ? -1 : 1);
      const shapes = [...weights].map(([key, { shape }]) => [key, shape] as const);
      assert.deepEqual([...network.listed].sort(order), shapes.sort(order));
    });

  for (const [height, width] of [
    [8, 8],
    [9, 7],
  ] as const)
    it(`gives a UNet the residuals that it takes, ${height}x${width}, times strength`, async () => {
      const weights = await controlWeights();
      const net = new OnnxGraph("control net");
      buildControlNet(networkOf(net, weights), configOf(weights));
      const session = await graphSession(net.encode({ overridable: true }));
      const { unet, tensor } = goldenLayers("sd1_fp8");
      const feeds = {
        ...unetFeeds(unet.find((vector) => vector.x === "unet.quiet.x")!, tensor),
        x: randn([1, 4, height, width], { seed: 3 }),
      };
      const hint = Tensor.from(
        randn([1, 3, 8 * height, 8 * width], { seed: 4 }).data.map((value) => Math.min(Math.abs(value), 1)),
        [1, 3, 8 * height, 8 * width],
      );
      const at = (strength: number) => session.run({ ...feeds, hint, strength: Tensor.from([strength], [1]) });
      const [full, half] = [await at(1), await at(0.5)];
      for (const [name, { data }] of Object.entries(full))
        assert.deepEqual([...half[name]!.data], [...data.map((value) => value * 0.5)], name);

      const own = await unetWeights();
      const graph = new OnnxGraph("unet");
      buildUnet(networkOf(graph, own), configOf(own), { controls: 1 });
      const steered = await graphSession(graph.encode({ overridable: true }));
      assert.equal(Object.keys(full).length, 13);
      const outs = [full, half].map(
        async (residuals) => (await steered.run({ ...feeds, ...ofFirstNet(residuals) })).out!,
      );
      const [a, b] = await Promise.all(outs);
      assert.deepEqual([...a!.shape], [1, 4, height, width]);
      assert.ok(layerError(a!, b!) > 1e-4);
      await session.release();
      await steered.release();
    });
});
