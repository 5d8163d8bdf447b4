import assert from "node:assert/strict";
import { randn } from "latentkit";
import { OnnxGraph } from "#src/host/checkpoint/onnx/graph.js";
import { product } from "#src/host/checkpoint/onnx/products.js";
import { CPU_TARGET } from "#src/host/checkpoint/onnx/target.js";
import { layerError } from "../../../../helpers/models/layers.js";
import { graphSession } from "../../../../helpers/models/session.js";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";

/** […, rows], inputs, outputs: fewer rows than outputs, and as many or more, of two ranks. */
const SHAPES = [
  [[1], 768, 320],
  [[2], 320, 1280],
  [[2, 77], 768, 640],
  [[2, 256], 640, 640],
  [[1, 320], 1280, 320],
  [[2, 400], 640, 640],
] as const;

const CASES = SHAPES.flatMap(([sides, inputs, outputs]) => {
  const rows = sides.reduce<number>((product, side) => product * side, 1);
  const each = { sides, inputs, outputs };
  const few = sides.length === 1 ? 2 : 3;
  return [{ ...each, few: undefined }, ...(rows < outputs ? ([{ ...each, few }] as const) : [])];
});

describe("product of streamed weights", () => {
  for (const { sides, inputs, outputs, few } of CASES)
    it(`${sides.join(" x ")} rows of ${inputs} to ${outputs}${few === undefined ? "" : ", few"}: same bits on 1 to 16 threads`, async () => {
      const results = [];
      const feeds = { x: randn([...sides, inputs], { seed: 1 }), w: randn([outputs, inputs], { seed: 2 }) };
      for (const isStreamed of [false, true]) {
        const graph = new OnnxGraph("product", CPU_TARGET, isStreamed);
        const names = sides.map((_, axis) => `side ${axis}`);
        const x = graph.input("x", "float", [...names, inputs]);
        const weight = graph.input("w", "float", [outputs, inputs]);
        graph.output(product(graph, x, weight, [inputs, outputs], { few }), "y", "float", [...names, outputs]);
        const encoded = graph.encode({ overridable: isStreamed });
        for (const intraOpNumThreads of isStreamed ? [1, 2, 7, 12, 16] : [1]) {
          const session = await graphSession(encoded, { intraOpNumThreads });
          results.push((await session.run(feeds)).y!);
          await session.release();
        }
      }
      const [plain, first, ...others] = results;
      for (const other of others) assertSameBits(other, first!, "y");
      assert.deepEqual([...first!.shape], [...sides, outputs]);
      assert.ok(layerError(first!, plain!) < 1e-6);
    });
});
