import assert from "node:assert/strict";
import { randn, Tensor } from "latentkit";
import { OnnxGraph, type Value } from "#src/host/checkpoint/onnx/graph.js";
import { buildUnet, type UnetConfig } from "#src/host/checkpoint/unet/build.js";
import { listedNetwork, networkOf } from "#src/host/checkpoint/weights/network.js";
import type { WeightMap } from "#src/host/checkpoint/weights/stored.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { fullSizeShapes } from "../../../../helpers/models/full-size.js";
import { unpackModel } from "../../../../helpers/models/golden.js";
import { goldenLayers, layerError, unetFeeds } from "../../../../helpers/models/layers.js";
import { CHECKPOINTS } from "../../../../helpers/models/recognised.js";
import { graphSession } from "../../../../helpers/models/session.js";
import { under, unetConfigOf } from "../../../../helpers/models/unet-config.js";
import { weightFile } from "../../../../helpers/models/weight-file.js";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";

const UNET = "model.diffusion_model.";
const TOLERANCE = 1e-5;
const PARAMETERS = {
  sd1: [686, 859_520_964],
  sd1_inpaint: [686, 859_535_364],
  sd2: [686, 865_910_724],
  sdxl: [1680, 2_567_463_684],
  sdxl_refiner: [1220, 2_259_526_660],
} as const;

const shapesOf = (weights: WeightMap) => new Map([...weights].map(([key, { shape }]) => [key, shape] as const));
const sorted = (shapes: ReadonlyMap<string, readonly number[]>) => [...shapes].sort(([a], [b]) => (a < b ? -1 : 1));

describe("buildUnet", () => {
  const folder = temporaryFolder();
  const unetWeights = async (name: string) =>
    under(UNET, (await weightFile(unpackModel(`checkpoints/${name}`, folder()))).weights);

  for (const name of CHECKPOINTS)
    for (const [mode, overridable] of [
      ["fold", false],
      ["stream @long", true],
    ] as const)
      it(`computes ${name} as the reference does, ${mode}`, async () => {
        const weights = await unetWeights(name);
        const { unet, tensor } = goldenLayers(name);
        const graph = new OnnxGraph(name);
        buildUnet(networkOf(graph, weights), unetConfigOf(shapesOf(weights)));
        const session = await graphSession(graph.encode({ overridable }));
        for (const vector of unet) {
          const { out } = await session.run(unetFeeds(vector, tensor));
          const error = layerError(out!, tensor(vector.out));
          assert.ok(error <= TOLERANCE, `${vector.out}: ${error}`);
        }
        await session.release();
      });

  for (const name of CHECKPOINTS.filter((name) => goldenLayers(name).unet_trace !== undefined))
    it(`has the reference's value after every block of ${name} @long`, async () => {
      const weights = await unetWeights(name);
      const { unet_trace, tensor } = goldenLayers(name);
      const vector = unet_trace!;
      const graph = new OnnxGraph(name);
      const trace = (key: string, value: Value): void => {
        const rank = key.endsWith("_emb") || key.endsWith("_embed") ? 2 : 4;
        const sides = Array.from({ length: rank }, (_, axis) => `${key} ${axis}`);
        graph.output(value, key, "float", sides);
      };
      buildUnet(networkOf(graph, weights), unetConfigOf(shapesOf(weights)), { trace });
      const session = await graphSession(graph.encode({ overridable: true }));
      const values = await session.run(unetFeeds(vector, tensor));
      const names = Object.entries({ ...vector.after, out: vector.out });
      assert.deepEqual(Object.keys(values).sort(), names.map(([key]) => key).sort());
      for (const [key, stored] of names) {
        const error = layerError(values[key]!, tensor(stored));
        assert.ok(error <= TOLERANCE, `${key}: ${error}`);
      }
      await session.release();
    });

  it("asks for every weight of the full-size files and no other, each in its shape", () => {
    const models = fullSizeShapes();
    for (const [family, [tensors, parameters]] of Object.entries(PARAMETERS)) {
      const shapes = under(UNET, new Map(Object.entries(models[family as keyof typeof PARAMETERS])));
      const network = listedNetwork();
      buildUnet(network, unetConfigOf(shapes));
      assert.deepEqual(sorted(network.listed), sorted(shapes), family);
      const sizes = [...network.listed.values()].map((shape) => shape.reduce((product, side) => product * side, 1));
      assert.deepEqual(
        [network.listed.size, sizes.reduce((sum, size) => sum + size, 0)],
        [tensors, parameters],
        family,
      );
    }
  });

  it("adds the residuals of control nets to the skips and after the middle @long", async () => {
    const weights = await unetWeights("sd1_fp8");
    const config = unetConfigOf(shapesOf(weights));
    const { unet, tensor } = goldenLayers("sd1_fp8");
    const feeds = unetFeeds(unet.find(({ x }) => x === "unet.quiet.x")!, tensor);
    const sessions = await Promise.all(
      [0, 1, 2].map((controls) => {
        const graph = new OnnxGraph("control");
        buildUnet(networkOf(graph, weights), config, { controls });
        return graphSession(graph.encode({ overridable: true }));
      }),
    );
    const sides = [8, 8, 8, 4, 4, 4, 2, 2, 2, 1, 1, 1];
    const residuals = (scale: number, net = 0) =>
      Object.fromEntries([
        ...config.input.map(({ channels }, i) => [
          `control_${i}.${net}`,
          filled([1, channels, sides[i]!, sides[i]!], scale, i),
        ]),
        [`control_middle.${net}`, filled([1, config.middle!.channels, 1, 1], scale, 99)],
      ]) as Record<string, Tensor>;
    const [plain] = [await sessions[0]!.run(feeds)];
    const [none, all] = [
      await sessions[1]!.run({ ...feeds, ...residuals(0) }),
      await sessions[1]!.run({ ...feeds, ...residuals(1) }),
    ];
    assertSameBits(none.out, plain!.out!);
    assert.ok(layerError(all.out!, plain!.out!) > 0.01);
    for (const name of Object.keys(residuals(0))) {
      const one = await sessions[1]!.run({ ...feeds, ...residuals(0), [name]: residuals(1)[name]! });
      assert.ok(layerError(one.out!, plain!.out!) > 1e-4, `${name} has an effect`);
    }
    const two = await sessions[2]!.run({ ...feeds, ...residuals(0.5), ...residuals(0.5, 1) });
    assertSameBits(two.out, all.out!);
    for (const session of sessions) await session.release();
  });

  it("builds relatives: no middle, a middle without transformer, own depths @long", () => {
    const config: UnetConfig = {
      inChannels: 4,
      outChannels: 4,
      modelChannels: 64,
      contextDim: 48,
      linearProjection: true,
      heads: { size: 64 },
      input: [
        { kind: "conv", channels: 64, depth: 0 },
        { kind: "res", channels: 64, depth: 0 },
        { kind: "down", channels: 64, depth: 0 },
        { kind: "res", channels: 128, depth: 2 },
      ],
      output: [
        { kind: "res", channels: 128, depth: 3, upsample: false },
        { kind: "res", channels: 128, depth: 0, upsample: true },
        { kind: "res", channels: 64, depth: 0, upsample: false },
        { kind: "res", channels: 64, depth: 0, upsample: false },
      ],
    };
    const keysOf = (changed: Partial<UnetConfig>): string[] => {
      const network = listedNetwork();
      buildUnet(network, { ...config, ...changed });
      return [...network.listed.keys()];
    };
    const without = keysOf({});
    assert.ok(!without.some((key) => key.startsWith("middle_block")));
    const short = keysOf({ middle: { kind: "res", channels: 128, depth: 0 } });
    assert.deepEqual(
      short.filter((key) => !without.includes(key)).every((key) => key.startsWith("middle_block.0.")),
      true,
    );
    const count = (key: string) => without.filter((one) => one.startsWith(key) && one.endsWith(".norm3.bias")).length;
    assert.deepEqual([count("input_blocks.3"), count("output_blocks.0"), count("output_blocks.1")], [2, 3, 0]);
    assert.ok(without.includes("output_blocks.1.1.conv.weight"));
  });

  it("refuses channels that do not split into groups or heads, and weights of other shapes", async () => {
    const weights = await unetWeights("sd1_fp8");
    const config = unetConfigOf(shapesOf(weights));
    const build = (changed: Partial<UnetConfig>) => () =>
      buildUnet(networkOf(new OnnxGraph("bad"), weights), { ...config, ...changed });
    await refuses(build({ heads: { count: 5 } }), "model.invalid", /32 channels do not split into 5 attention heads/);
    await refuses(
      build({ heads: { size: 64 } }),
      "model.invalid",
      /32 channels do not split into attention heads of 64/,
    );
    await refuses(
      build({ inChannels: 9 }),
      "model.invalid",
      /"input_blocks.0.0.weight": expected shape \[32, 9, 3, 3\]/,
    );
    const narrow = config.input.map((block) => ({ ...block, channels: block.channels === 64 ? 48 : block.channels }));
    const listed = () => buildUnet(listedNetwork(), { ...config, input: narrow });
    await refuses(listed, "model.invalid", /expected a multiple of 32 channels, received 48/);
  });
});

/** Noise of a seed, times a scale. */
function filled(shape: readonly number[], scale: number, seed: number): Tensor {
  return Tensor.from(
    randn(shape, { seed }).data.map((value) => value * scale),
    shape,
  );
}
