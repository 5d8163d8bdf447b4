import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { Tensor } from "latentkit";
import { OnnxGraph } from "#src/host/checkpoint/onnx/graph.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { graphSession } from "../../../../helpers/models/session.js";
import { f32, weightFile, words, writeWeights } from "../../../../helpers/models/weight-file.js";
import { skip } from "../../../../helpers/skip.js";

const FLOAT = { to: { int: 1 } };
const modes = [{ overridable: false }, { overridable: true }];

describe("OnnxGraph", () => {
  const folder = temporaryFolder();

  it("runs: inputs with symbolic sides, constants, attributes of all kinds, operators with several outputs", async () => {
    const graph = new OnnxGraph("small");
    const x = graph.input("x", "float", ["B", 4]);
    const [left, right] = graph.nodeWithOutputs("Split", [x, graph.ints([1, 3])], 2, { axis: { int: -1 } });
    const scaled = graph.node("Mul", [right!, graph.floats([10], [])]);
    const joined = graph.node("Concat", [scaled, left!], { axis: { int: 1 } });
    const leaky = graph.node("LeakyRelu", [joined], { alpha: { float: 0.5 } });
    const upright = graph.node("Transpose", [leaky], { perm: { ints: [1, 0] } });
    const padded = graph.node("Pad", [upright, graph.ints([0, 0, 1, 0]), undefined], { mode: { text: "edge" } });
    graph.output(padded, "out", "float", [5, "B"]);
    assert.equal(graph.floats([10], []), graph.floats([10], []));
    assert.notEqual(graph.floats([10], []), graph.floats([10], [1]));
    const encoded = graph.encode({ overridable: false });
    assert.deepEqual([encoded.folder, encoded.files], ["", []]);
    const session = await graphSession(encoded);
    const { out } = await session.run({ x: Tensor.from([1, 2, 3, -4, 5, 6, 7, 8], [2, 4]) });
    assert.deepEqual([...out!.shape], [5, 2]);
    assert.deepEqual([...out!.data], [20, 60, 30, 70, -20, 80, 1, 5, 1, 5]);
    await session.release();
  });

  for (const mode of modes)
    it(`reads weights of every type where they lie, at odd offsets${mode.overridable ? ", overridable" : ""}`, async () => {
      const path = writeWeights(join(folder(), "all types.safetensors"), {
        one: { dtype: "F8_E4M3", shape: [1], bytes: Uint8Array.of(0x38) },
        f32: f32([2], [0.1, -2]),
        f16: words("F16", [2], [0x3c00, 0xc500]),
        bf16: words("BF16", [2], [0x3f80, 0xc0a0]),
        f64: { dtype: "F64", shape: [2], bytes: new Uint8Array(Float64Array.of(7, 0.5).buffer) },
        e4m3: { dtype: "F8_E4M3", shape: [2], bytes: Uint8Array.of(0x7e, 0x81) },
        e5m2: { dtype: "F8_E5M2", shape: [2], bytes: Uint8Array.of(0x3e, 0xfb) },
      });
      const { weights } = await weightFile(path);
      const graph = new OnnxGraph("types");
      for (const [key, weight] of weights) {
        const value = graph.stored(weight);
        graph.output(weight.dtype === "F32" ? value : graph.node("Cast", [value], FLOAT), key, "float", weight.shape);
      }
      const encoded = graph.encode(mode);
      assert.deepEqual(encoded.files, [path]);
      const session = await graphSession(encoded);
      const values = await session.run({});
      const expected = {
        one: [1],
        f32: [Math.fround(0.1), -2],
        f16: [1, -5],
        bf16: [1, -5],
        f64: [7, 0.5],
        e4m3: [448, -(2 ** -9)],
        e5m2: [1.5, -57344],
      };
      assert.deepEqual(Object.fromEntries(Object.entries(values).map(([key, { data }]) => [key, [...data]])), expected);
      await session.release();
    });

  it("reads overridable weights at every run, others when it is loaded", async function () {
    if (process.platform !== "linux") skip(this, "only on Linux may a mapped file be written to");
    const read: Record<string, number[]> = {};
    for (const [name, mode] of Object.entries({ fold: modes[0]!, stream: modes[1]! })) {
      const path = writeWeights(join(folder(), `${name}.safetensors`), { w: words("F16", [1], [0x3c00]) });
      const graph = new OnnxGraph(name);
      const { weights } = await weightFile(path);
      graph.output(graph.node("Cast", [graph.stored(weights.get("w")!)], FLOAT), "w", "float", [1]);
      const session = await graphSession(graph.encode(mode));
      const first = await session.run({});
      const bytes = readFileSync(path);
      bytes.writeUInt16LE(0x4000, bytes.length - 2);
      writeFileSync(path, bytes, { flag: "r+" });
      const second = await session.run({});
      read[name] = [first.w!.data[0]!, second.w!.data[0]!];
      await session.release();
    }
    assert.deepEqual(read, { fold: [1, 1], stream: [1, 2] });
  });

  it("adds files of several folders under the folder that holds all of them", async () => {
    const folders = ["a/deep", "a/b", "ab"].map((name) => join(folder(), name));
    for (const path of folders) mkdirSync(path, { recursive: true });
    const paths = folders.map((path, i) => writeWeights(join(path, "w.safetensors"), { w: f32([1], [10 ** i]) }));
    const graph = new OnnxGraph("files");
    const values = await Promise.all(
      paths.map(async (path) => graph.stored((await weightFile(path)).weights.get("w")!)),
    );
    graph.output(graph.node("Sum", values), "sum", "float", [1]);
    const encoded = graph.encode({ overridable: true });
    assert.equal(basename(encoded.folder), basename(folder()));
    const session = await graphSession(encoded);
    assert.deepEqual([...(await session.run({})).sum!.data], [111]);
    await session.release();
  });

  it("refuses weights that are not floats", async () => {
    const path = writeWeights(join(folder(), "ids.safetensors"), {
      ids: { dtype: "I64", shape: [1], bytes: new Uint8Array(8) },
    });
    const { weights } = await weightFile(path);
    await refuses(
      () => new OnnxGraph("ids").stored(weights.get("ids")!),
      "model.invalid",
      /a type of floats, received I64/,
    );
  });
});
