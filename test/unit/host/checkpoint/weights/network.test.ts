import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { linear } from "#src/host/checkpoint/networks/layers.js";
import { OnnxGraph, type Value } from "#src/host/checkpoint/onnx/graph.js";
import { CPU_TARGET } from "#src/host/checkpoint/onnx/target.js";
import { listedNetwork, type Network, networkOf, type WeightChange } from "#src/host/checkpoint/weights/network.js";
import { cpuMsSince } from "../../../../helpers/cpu-time.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { graphSession } from "../../../../helpers/models/session.js";
import { f32, type RawTensor, weightFile, words, writeWeights } from "../../../../helpers/models/weight-file.js";

const times =
  (factor: number): WeightChange =>
  (graph, weight) =>
    graph.node("Mul", [weight, graph.floats([factor], [])]);
const plus =
  (amount: number): WeightChange =>
  (graph, weight, shape) =>
    graph.node("Add", [weight, graph.floats(new Array(shape[0]! * shape[1]!).fill(amount), shape)]);

describe("networkOf", () => {
  const folder = temporaryFolder();
  const table = words("F16", [3, 2], [0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600]);
  const opened = async (tensors: Record<string, RawTensor>) =>
    (await weightFile(writeWeights(join(folder(), "w.safetensors"), tensors))).weights;

  /** Values of a graph with one output. */
  async function computed(graph: OnnxGraph, ids?: readonly number[]): Promise<number[]> {
    const session = await graphSession(graph.encode({ overridable: true }));
    const { out } = await session.run(ids === undefined ? {} : { ids: { int64: ids, shape: [ids.length] } });
    await session.release();
    return [...out!.data];
  }

  it("gives a weight as float32, one value for all uses", async () => {
    const graph = new OnnxGraph("weights");
    const network = networkOf(graph, await opened({ half: table, full: f32([3, 2]) }));
    const half = network.weight("half", [3, 2]);
    assert.equal(network.weight("half", [3, 2]), half);
    graph.output(graph.node("Sub", [half, network.weight("full", [3, 2])]), "out", "float", [3, 2]);
    assert.deepEqual(await computed(graph), [0, 0, 0, 0, 0, 0]);
  });

  it("streams many weights that load in a time which grows with their number alone", async () => {
    const half = (await opened({ half: words("F16", [4, 4], new Array(16).fill(0x3c00)) })).get("half")!;
    const loading = async (layers: number): Promise<number> => {
      const graph = new OnnxGraph("many", CPU_TARGET, true);
      const keys = Array.from({ length: layers }, (_, layer) => `${layer}.weight`);
      const network = networkOf(graph, new Map(keys.map((key) => [key, half])));
      let x = graph.input("x", "float", ["B", "L", 4]);
      for (let layer = 0; layer < layers; layer++)
        x = graph.node("Add", [x, linear(network, String(layer), x, [4, 4], { bias: false, few: 3 })]);
      graph.output(x, "out", "float", ["B", "L", 4]);
      const encoded = graph.encode({ overridable: true });
      let best = Number.POSITIVE_INFINITY;
      for (let round = 0; round < 3; round++) {
        const start = process.cpuUsage();
        const session = await graphSession(encoded);
        best = Math.min(best, cpuMsSince(start));
        await session.release();
      }
      return best;
    };
    const [few, many] = [await loading(300), await loading(1200)];
    // with the square it was 14 times as long
    assert.ok(many < 9 * few, `${many} ms for four times the weights of ${few} ms`);
  });

  it("adds columns of zeros that the file does not have, before any change", async () => {
    const weights = await opened({
      "byte.weight": { dtype: "F8_E4M3", shape: [2, 1], bytes: Uint8Array.of(0x38, 0x40) },
      "byte.scale_weight": f32([], [3]),
    });
    const widened = { ...weights.get("byte.weight")!, shape: [2, 3], storedColumns: 1 };
    const graph = new OnnxGraph("widened");
    const changes = new Map([["byte.weight", [plus(1)]]]);
    graph.output(
      networkOf(graph, new Map([["byte.weight", widened]]), { changes }).weight("byte.weight", [2, 3]),
      ...(["out", "float", [2, 3]] as const),
    );
    assert.deepEqual(await computed(graph), [4, 1, 1, 7, 1, 1]);
  });

  it("holds halves as F16: whole, as rows, and with a factor", async () => {
    const weights = await opened({
      bf16: words("BF16", [3, 2], [0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0]),
      "byte.weight": { dtype: "F8_E4M3", shape: [2, 2], bytes: Uint8Array.of(0x38, 0xb8, 0x40, 0xc0) },
      "byte.scale_weight": f32([], [3]),
    });
    const halves = new Set([weights.get("bf16")!, weights.get("byte.weight")!]);
    const target = { ...CPU_TARGET, halfTypes: ["F16"] } as const;
    const make = (build: (network: Network) => Value) => {
      const graph = new OnnxGraph("halves", target);
      const value = build(networkOf(graph, weights, { halves }));
      graph.output(value, "out", "float", ["a", "b"]);
      return graph;
    };
    const whole = make((network) => network.weight("bf16", [3, 2]));
    assert.deepEqual(await computed(whole), [1, 2, 3, 4, 5, 6]);
    const rows = make((network) => network.rows("bf16", [3, 2], network.graph.input("ids", "int64", ["n"])));
    assert.deepEqual(await computed(rows, [2, 0]), [5, 6, 1, 2]);
    const scaled = make((network) => network.weight("byte.weight", [2, 2]));
    assert.deepEqual(await computed(scaled), [3, -3, 6, -6]);
    // loaded as 16 bits, and no further
    const path = join(folder(), "optimized.onnx");
    const encoded = whole.encode({ overridable: "F16" });
    const session = await graphSession(encoded, { optimizedModelFilePath: path });
    await session.release();
    const text = readFileSync(path, "latin1");
    assert.ok(
      text.includes(
        Buffer.from(Uint16Array.of(0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600).buffer).toString("latin1"),
      ),
    );
    assert.match(text, /Cast/);
  });

  it("applies changes in order, after the conversion", async () => {
    const graph = new OnnxGraph("changes");
    const changes = new Map([["half", [times(2), plus(1)]]]);
    const network = networkOf(graph, await opened({ half: table }), { changes });
    graph.output(network.weight("half", [3, 2]), "out", "float", [3, 2]);
    assert.deepEqual(await computed(graph), [3, 5, 7, 9, 11, 13]);
  });

  it("multiplies 8-bit weights by their factor, one or one for each row, under both keys", async () => {
    const bytes = Uint8Array.of(0x38, 0xb8, 0x40, 0xc0);
    for (const key of ["a.scale_weight", "a.weight_scale"])
      for (const [factor, expected] of [
        [f32([], [3]), [3, -3, 6, -6]],
        [f32([1], [3]), [3, -3, 6, -6]],
        [f32([1, 1], [3]), [3, -3, 6, -6]],
        [f32([2], [3, 5]), [3, -3, 10, -10]],
        [f32([2, 1], [3, 5]), [3, -3, 10, -10]],
        [words("BF16", [2, 1], [0x4040, 0x40a0]), [3, -3, 10, -10]],
      ] as const) {
        const weights = await opened({ "a.weight": { dtype: "F8_E4M3", shape: [2, 2], bytes }, [key]: factor });
        const graph = new OnnxGraph("scaled");
        graph.output(networkOf(graph, weights).weight("a.weight", [2, 2]), "out", "float", [2, 2]);
        assert.deepEqual(await computed(graph), expected);
        const table = new OnnxGraph("rows");
        const rows = networkOf(table, weights).rows("a.weight", [2, 2], table.input("ids", "int64", ["n"]));
        table.output(rows, "out", "float", ["n", 2]);
        assert.deepEqual(await computed(table, [1, 1, 0]), [
          ...expected.slice(2),
          ...expected.slice(2),
          ...expected.slice(0, 2),
        ]);
      }
  });

  it("gathers rows of a table, changed or not", async () => {
    for (const [changes, expected] of [
      [undefined, [5, 6, 1, 2]],
      [new Map([["t", [times(3)]]]), [15, 18, 3, 6]],
    ] as const) {
      const graph = new OnnxGraph("rows");
      const network = networkOf(graph, await opened({ t: table }), { changes });
      const rows = network.rows("t", [3, 2], graph.input("ids", "int64", ["n"]));
      graph.output(rows, "out", "float", ["n", 2]);
      assert.deepEqual(await computed(graph, [2, 0]), expected);
    }
  });

  it("refuses absent weights and other shapes, by key", async () => {
    const network = networkOf(new OnnxGraph("bad"), await opened({ half: table }));
    await refuses(() => network.weight("gone.weight", [1]), "model.invalid", /Weight "gone.weight" is missing/);
    for (const shape of [[2, 3], [6], [3, 2, 1]]) {
      const pattern = new RegExp(`"half": expected shape \\[${shape.join(", ")}\\], received \\[3, 2\\]`);
      await refuses(() => network.weight("half", shape), "model.invalid", pattern);
      await refuses(() => network.rows("half", shape, network.graph.ints([0])), "model.invalid", pattern);
    }
  });
});

describe("listedNetwork", () => {
  it("lists each key once with its shape, tables too", () => {
    const network = listedNetwork();
    network.weight("a", [1, 2]);
    network.rows("t", [5, 3], network.graph.ints([0]));
    network.weight("a", [1, 2]);
    assert.deepEqual(
      [...network.listed],
      [
        ["a", [1, 2]],
        ["t", [5, 3]],
      ],
    );
  });
});
