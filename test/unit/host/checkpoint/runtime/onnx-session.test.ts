import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import * as ort from "onnxruntime-node";
import { ProtobufWriter } from "#src/host/checkpoint/onnx/protobuf.js";
import { fromHalves, OnnxSession, toHalves } from "#src/host/checkpoint/runtime/onnx-session.js";
import { sessionOptions } from "#src/host/checkpoint/session/options.js";
import { temporaryFolder } from "../../../../helpers/folders.js";

/** Numbers of TensorProto.DataType. */
const TYPES = { float: 1, uint8: 2, int32: 6, int64: 7, bool: 9, float16: 10, double: 11 };

/** A graph that casts its input "x" [n] from one type to another. */
function castGraph(from: number, to: number): Uint8Array {
  const port = (message: ProtobufWriter, name: string, type: number) => {
    message.text(1, name);
    message.message(2, (typeProto) =>
      typeProto.message(1, (tensor) => {
        tensor.integer(1, type);
        tensor.message(2, (shape) => shape.message(1, (side) => side.text(2, "n")));
      }),
    );
  };
  const model = new ProtobufWriter();
  model.integer(1, 9);
  model.message(7, (graph) => {
    graph.message(1, (node) => {
      node.text(1, "x");
      node.text(2, "y");
      node.text(4, "Cast");
      node.message(5, (attribute) => {
        attribute.text(1, "to");
        attribute.integer(3, to);
        attribute.integer(20, 2);
      });
    });
    graph.text(2, "cast");
    graph.message(11, (message) => port(message, "x", from));
    graph.message(12, (message) => port(message, "y", to));
  });
  model.message(8, (opset) => {
    opset.text(1, "");
    opset.integer(2, 17);
  });
  return model.finish();
}

const options = sessionOptions({ provider: "cpu", threads: 1 }, "");

async function cast(from: number, to: number, values: Float32Array | number[]) {
  const session = await OnnxSession.create(ort, castGraph(from, to), options);
  try {
    const [output] = await session.run([{ name: "x", shape: [values.length], values }]);
    return { ...output, values: [...output!.values] };
  } finally {
    await session.release();
  }
}

describe("OnnxSession", () => {
  const folder = temporaryFolder();
  for (const type of ["float", "float16", "double", "int32", "int64"] as const) {
    it(`gives float32 to an input of type ${type}, and takes it from such an output`, async () => {
      const values = [-2, 0, 1, 100];
      assert.deepEqual((await cast(TYPES[type], TYPES.float, Float32Array.from(values))).values, values);
      assert.deepEqual(await cast(TYPES.float, TYPES[type], Float32Array.from(values)), {
        name: "y",
        shape: [4],
        values,
      });
    });
  }

  it("gives whole numbers to inputs of any type", async () => {
    for (const type of [TYPES.int64, TYPES.int32, TYPES.float, TYPES.float16])
      assert.deepEqual((await cast(type, TYPES.float, [3, 49_152])).values, [3, 49_152]);
    assert.deepEqual((await cast(TYPES.bool, TYPES.float, [0, 7])).values, [0, 1]);
  });

  it("rounds to binary16 as ONNX Runtime does", async () => {
    const values = Float32Array.from({ length: 2000 }, (_, i) => Math.sin(i) * 10 ** ((i % 14) - 8));
    const [ours, theirs] = await Promise.all([
      cast(TYPES.float16, TYPES.float, values),
      cast(TYPES.float, TYPES.float16, values),
    ]);
    assert.deepEqual(ours.values, theirs.values);
  });

  it("loads a file, tells its ports, and computes the outputs that are asked for", async () => {
    const file = join(folder(), "model.onnx");
    writeFileSync(file, castGraph(TYPES.int32, TYPES.float16));
    const session = await OnnxSession.create(ort, file, options);
    assert.deepEqual(session.ports, {
      inputs: [{ name: "x", type: "int32", shape: ["n"] }],
      outputs: [{ name: "y", type: "float16", shape: ["n"] }],
    });
    const inputs = [{ name: "x", shape: [1], values: [3] }];
    assert.deepEqual(
      (await session.run(inputs, ["y"])).map(({ values }) => [...values]),
      [[3]],
    );
    await assert.rejects(session.run(inputs, ["z"]), /z/);
    await session.release();
  });

  it("refuses a name that is not an input, and an unknown type", async () => {
    const session = await OnnxSession.create(ort, castGraph(TYPES.float, TYPES.float), options);
    await assert.rejects(session.run([{ name: "z", shape: [1], values: [1] }]), /the model has no input "z", only x/);
    await session.release();
    await assert.rejects(cast(TYPES.uint8, TYPES.float, [1]), /input "x" has type uint8/);
  });
});

const half = (value: number) => toHalves(Float32Array.of(value))[0]!;

describe("toHalves", () => {
  it("turns every half that is a number back into itself", () => {
    const all = Uint16Array.from({ length: 65_536 }, (_, bits) => bits).filter((bits) => (bits & 0x7fff) <= 0x7c00);
    assert.deepEqual(toHalves(fromHalves(all)), all);
  });

  it("rounds to the nearest half, ties to even", () => {
    assert.equal(half(1 + 2 ** -11), 0x3c00);
    assert.equal(half(1 + 3 * 2 ** -11), 0x3c02);
    assert.equal(half(1 + 2 ** -11 + 2 ** -20), 0x3c01);
    assert.equal(half(2 ** -25), 0);
    assert.equal(half(2 ** -25 + 2 ** -40), 1);
    assert.equal(half(3 * 2 ** -25), 2);
    assert.equal(half(2 ** -14 - 2 ** -26), 0x0400);
  });

  it("makes infinity of what is too large, and keeps NaN and signs", () => {
    assert.equal(half(65_519), 0x7bff);
    assert.equal(half(65_520), 0x7c00);
    assert.equal(half(-1e30), 0xfc00);
    assert.equal(half(Number.POSITIVE_INFINITY), 0x7c00);
    assert.equal(half(Number.NaN) & 0x7fff, 0x7e00);
    assert.equal(half(-0), 0x8000);
    assert.equal(half(-1e-30), 0x8000);
  });
});
