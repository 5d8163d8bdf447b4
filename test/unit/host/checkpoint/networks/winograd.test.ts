import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { randn, type Tensor } from "latentkit";
import { conv } from "#src/host/checkpoint/networks/layers.js";
import { convInTiles } from "#src/host/checkpoint/networks/winograd.js";
import { OnnxGraph, type Value } from "#src/host/checkpoint/onnx/graph.js";
import { CPU_TARGET, type Target } from "#src/host/checkpoint/onnx/target.js";
import { buildVaeDecoder, buildVaeEncoder, type VaeConfig } from "#src/host/checkpoint/vae/build.js";
import { listedNetwork, type Network, networkOf } from "#src/host/checkpoint/weights/network.js";
import { writeSafetensors } from "#src/io/safetensors.js";
import { scale } from "#src/tensor/ops.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { layerError } from "../../../../helpers/models/layers.js";
import { graphSession } from "../../../../helpers/models/session.js";
import { weightFile } from "../../../../helpers/models/weight-file.js";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";

const PLAIN: Target = { ...CPU_TARGET, convInTiles: undefined };
/** Values of F(4x4) lose about a digit of float32. */
const TOLERANCE = 2e-5;

describe("convolutions in tiles", () => {
  const folder = temporaryFolder();

  async function run(
    weights: Record<string, Tensor>,
    feeds: Record<string, Tensor>,
    build: (network: Network) => void,
    { target = CPU_TARGET, threads = 2 } = {},
  ): Promise<Tensor> {
    const path = join(folder(), "weights.safetensors");
    writeFileSync(path, writeSafetensors(weights));
    const network = networkOf(new OnnxGraph("tiles", target), (await weightFile(path)).weights);
    build(network);
    const session = await graphSession(network.graph.encode({ overridable: false }), { intraOpNumThreads: threads });
    try {
      return Object.values(await session.run(feeds))[0]!;
    } finally {
      await session.release();
    }
  }

  const WIDTH = [32, 48] as const;
  const weights = {
    "a.weight": scale(randn([48, 32, 3, 3], { seed: 1 }), 1 / 17),
    "a.bias": randn([48], { seed: 2 }),
  };
  const built = (compute: (network: Network, x: Value) => Value) => (network: Network) => {
    const x = network.graph.input("x", "float", [1, 32, "h", "w"]);
    network.graph.output(compute(network, x), "y", "float", [1, 48, "h", "w"]);
  };
  const inTiles = (options: Parameters<typeof convInTiles>[4]) =>
    built((network, x) => convInTiles(network, "a", x, WIDTH, options));
  const plain = built((network, x) => conv(network, "a", x, WIDTH, { kernel: 3 }));

  for (const [height, width] of [
    [1, 1],
    [2, 7],
    [4, 4],
    [9, 3],
    [16, 12],
  ] as const)
    it(`equal the plain one on ${height} x ${width}`, async () => {
      const x = randn([1, 32, height, width], { seed: 3 });
      const y = await run(weights, { x }, inTiles({ isWhole: false }));
      assert.ok(layerError(y, await run(weights, { x }, plain)) < TOLERANCE);
    });

  it("are the same as a whole and in halves where sides are whole tiles", async () => {
    const x = randn([1, 32, 24, 20], { seed: 3 });
    const expected = await run(weights, { x }, inTiles({ isWhole: false }));
    assert.ok(layerError(expected, await run(weights, { x }, plain)) < TOLERANCE);
    for (const inHalves of [false, true]) {
      const y = await run(weights, { x }, inTiles({ isWhole: true, inHalves }));
      assert.ok(layerError(y, expected) < 1e-6, String(inHalves));
    }
  });

  it("have the same bits on any number of threads", async () => {
    const x = randn([1, 32, 20, 36], { seed: 3 });
    const [first, ...others] = await Promise.all(
      [1, 2, 7, 12].map((threads) => run(weights, { x }, inTiles({ isWhole: true }), { threads })),
    );
    for (const other of others) assertSameBits(other, first!, "y");
  });

  const config: VaeConfig = {
    family: "sd",
    channels: 128,
    multipliers: [1, 2, 1, 1],
    blocks: 1,
    encoderChannels: 128,
    latentChannels: 4,
    normalised: false,
    quantised: true,
    attention: 4,
    hasEncoder: true,
  };
  for (const [name, build, feeds] of [
    ["decoder", buildVaeDecoder, { z: randn([1, 4, 3, 5], { seed: 4 }) }],
    ["encoder", buildVaeEncoder, { image: randn([1, 3, 24, 40], { seed: 4 }) }],
  ] as const)
    it(`make the ${name} of a VAE that equals the plain one, for latents of any sides`, async () => {
      const listed = listedNetwork();
      build(listed, config);
      const own = Object.fromEntries(
        Array.from(listed.listed, ([key, shape], seed) => {
          const inputs = shape.slice(1).reduce((product, side) => product * side, 1);
          return [key, scale(randn([...shape], { seed }), 1 / Math.sqrt(inputs))];
        }),
      );
      const [tiled, expected] = await Promise.all(
        [CPU_TARGET, PLAIN].map((target) => run(own, feeds, (network) => build(network, config), { target })),
      );
      assert.deepEqual(tiled!.shape, expected!.shape);
      const error = layerError(tiled!, expected!);
      assert.ok(error > 0 && error < TOLERANCE, String(error));
    });
});
