import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { randn, Tensor } from "latentkit";
import {
  attention,
  conv,
  groupNorm,
  linear,
  resizedAs,
  timestepEmbedding,
} from "#src/host/checkpoint/networks/layers.js";
import { OnnxGraph } from "#src/host/checkpoint/onnx/graph.js";
import { CPU_TARGET, type Target } from "#src/host/checkpoint/onnx/target.js";
import { networkOf } from "#src/host/checkpoint/weights/network.js";
import { writeSafetensors } from "#src/io/safetensors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { layerError } from "../../../../helpers/models/layers.js";
import { graphSession } from "../../../../helpers/models/session.js";
import { weightFile } from "../../../../helpers/models/weight-file.js";

describe("layers of networks", () => {
  const folder = temporaryFolder();

  /** A network of these weights. */
  async function networkWith(weights: Record<string, Tensor>, target = CPU_TARGET) {
    const path = join(folder(), "weights.safetensors");
    writeFileSync(path, writeSafetensors(weights));
    return networkOf(new OnnxGraph("layers", target), (await weightFile(path)).weights);
  }

  it("computes a convolution of nine channels with three more of zeros as without", async () => {
    const weights = { "a.weight": randn([8, 9, 3, 3], { seed: 1 }), "a.bias": randn([8], { seed: 2 }) };
    const x = randn([2, 9, 5, 7], { seed: 3 });
    const results = [];
    for (const convChannels of ["any", "fours"] as const) {
      const network = await networkWith(weights, { ...CPU_TARGET, convChannels });
      const { graph } = network;
      const input = graph.input("x", "float", ["B", 9, "h", "w"]);
      graph.output(conv(network, "a", input, [9, 8], { kernel: 3 }), "y", "float", ["B", 8, "h", "w"]);
      const encoded = graph.encode({ overridable: true });
      assert.equal(Buffer.from(encoded.bytes).includes("Pad"), convChannels === "fours");
      const session = await graphSession(encoded);
      results.push((await session.run({ x })).y!);
      await session.release();
    }
    assert.ok(layerError(results[1]!, results[0]!) < 1e-6);
  });

  it("computes linear layers with a transposed weight as without", async () => {
    const weights = { "a.weight": randn([24, 16], { seed: 1 }), "a.bias": randn([24], { seed: 2 }) };
    const results = [];
    for (const matMul of ["fused", "transposed"] as const) {
      const network = await networkWith(weights, { ...CPU_TARGET, matMul });
      const { graph } = network;
      const prompt = graph.input("prompt", "float", ["B", "S", 16]);
      graph.output(linear(network, "a", prompt, [16, 24]), "tokens", "float", ["B", "S", 24]);
      const encoded = graph.encode({ overridable: false });
      assert.equal(Buffer.from(encoded.bytes).includes("FusedMatMul"), matMul === "fused");
      const session = await graphSession(encoded);
      results.push((await session.run({ prompt: randn([2, 5, 16], { seed: 3 }) })).tokens!);
      await session.release();
    }
    const [fused, transposed] = results;
    assert.ok(layerError(transposed!, fused!) < 1e-6);
  });

  it("writes attention out in parts, for any number of queries", async () => {
    // heads of six numbers
    const [heads, width, keys] = [4, 24, 7];
    const session = (target: Target, parts: number) => {
      const graph = new OnnxGraph("attention", target);
      const [query, key, value] = ["query", "key", "value"].map((name) =>
        graph.input(name, "float", ["B", `${name}s`, width]),
      );
      const mask = graph.input("mask", "float", [1, 1, "querys", "keys"]);
      const masked = { heads, width, mask };
      graph.output(attention(graph, [query!, key!, value!], { heads, width, parts }), "out", "float", [
        "B",
        "L",
        width,
      ]);
      graph.output(attention(graph, [query!, key!, value!], masked), "masked", "float", ["B", "L", width]);
      const encoded = graph.encode({ overridable: false });
      assert.equal(Buffer.from(encoded.bytes).includes("MultiHeadAttention"), target === CPU_TARGET);
      return graphSession(encoded);
    };
    const fused = await session(CPU_TARGET, 1);
    const targets = [
      { ...CPU_TARGET, attention: "plain" },
      { ...CPU_TARGET, largestHead: 5 },
    ] as const;
    for (const [target, parts] of targets.flatMap((target) => [1, 8].map((parts) => [target, parts] as const))) {
      const plain = await session(target, parts);
      for (const queries of [1, 7, 8, 9, 57, 64]) {
        const feeds = {
          query: randn([2, queries, width], { seed: 1 }),
          key: randn([2, keys, width], { seed: 2 }),
          value: randn([2, keys, width], { seed: 3 }),
          mask: randn([1, 1, queries, keys], { seed: 4 }),
        };
        const [expected, received] = [await fused.run(feeds), await plain.run(feeds)];
        for (const name of ["out", "masked"]) {
          assert.deepEqual(received[name]!.shape, expected[name]!.shape);
          const error = layerError(received[name]!, expected[name]!);
          assert.ok(error < 1e-6, `${name}, ${queries} queries in ${parts} parts: ${error}`);
        }
      }
      await plain.release();
    }
    await fused.release();
  });

  it("normalises a nearly flat picture without losing its differences", async () => {
    const network = await networkWith({ "n.weight": Tensor.full([32], 1), "n.bias": Tensor.zeros([32]) });
    const { graph } = network;
    const x = graph.input("x", "float", ["B", 32, "h", "w"]);
    graph.output(groupNorm(network, "n", x, 32, 1e-6), "out", "float", ["B", 32, "h", "w"]);
    const cells = 64;
    const picture = Tensor.from(
      randn([1, 32, 8, 8], { seed: 5 }).data.map((value) => 3 + value / 100),
      [1, 32, 8, 8],
    );
    const expected = new Float32Array(picture.size);
    for (let from = 0; from < picture.size; from += cells) {
      const group = [...picture.data.subarray(from, from + cells)];
      const mean = group.reduce((sum, value) => sum + value, 0) / cells;
      const variance = group.reduce((sum, value) => sum + (value - mean) ** 2, 0) / cells;
      for (const [i, value] of group.entries()) expected[from + i] = (value - mean) / Math.sqrt(variance + 1e-6);
    }
    const session = await graphSession(graph.encode({ overridable: false }));
    const { out } = await session.run({ x: picture });
    const error = layerError(out!, Tensor.from(expected, [1, 32, 8, 8]));
    assert.ok(error < 1e-6, `${error}`);
    await session.release();
  });

  it("embeds timesteps as cosines, then sines", async () => {
    const graph = new OnnxGraph("timesteps");
    const timestep = graph.input("t", "float", ["B"]);
    graph.output(timestepEmbedding(graph, timestep, 6), "out", "float", ["B", 6]);
    const session = await graphSession(graph.encode({ overridable: false }));
    const { out } = await session.run({ t: Tensor.from([0, 2.5], [2]) });
    const angles = [0, 1, 2].map((i) => 2.5 * 10_000 ** (-i / 3));
    const expected = [1, 1, 1, 0, 0, 0, ...angles.map(Math.cos), ...angles.map(Math.sin)];
    assert.ok(layerError(out!, Tensor.from(expected, [2, 6])) < 1e-6);
    await session.release();
  });

  it("resizes to the sides of another picture, each cell from the nearest below", async () => {
    const graph = new OnnxGraph("resize");
    const x = graph.input("x", "float", ["B", 1, "h", "w"]);
    const like = graph.input("like", "float", ["B", 2, "H", "W"]);
    graph.output(resizedAs(graph, x, like), "out", "float", ["B", 1, "H", "W"]);
    const session = await graphSession(graph.encode({ overridable: false }));
    const { out } = await session.run({
      x: Tensor.from([1, 2, 3, 4, 5, 6], [1, 1, 2, 3]),
      like: Tensor.zeros([1, 2, 3, 5]),
    });
    assert.deepEqual([...out!.shape], [1, 1, 3, 5]);
    assert.deepEqual([...out!.data], [1, 1, 2, 2, 3, 1, 1, 2, 2, 3, 4, 4, 5, 5, 6]);
    await session.release();
  });
});
