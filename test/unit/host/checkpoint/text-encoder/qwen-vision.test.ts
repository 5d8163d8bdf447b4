import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { OnnxGraph, type Value } from "#src/host/checkpoint/onnx/graph.js";
import { CPU_TARGET, type Target } from "#src/host/checkpoint/onnx/target.js";
import {
  buildQwenVision,
  type QwenVisionConfig,
  type SeenPicture,
  seenPicture,
  visionFeeds,
} from "#src/host/checkpoint/text-encoder/qwen-vision.js";
import { networkOf } from "#src/host/checkpoint/weights/network.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { flowLayers, flowWeights } from "../../../../helpers/models/golden-flow.js";
import { layerError } from "../../../../helpers/models/layers.js";
import { graphSession } from "../../../../helpers/models/session.js";

const CONFIG: QwenVisionConfig = { width: 32, heads: 2, headSize: 16, mlp: 40, blocks: 3, hidden: 32 };
const TOLERANCE = 1e-5;
const FORMS: readonly (readonly [string, Target])[] = [
  ["fused", CPU_TARGET],
  ["plain", { attention: "plain", largestHead: 256, matMul: "transposed", convChannels: "fours", halfTypes: [] }],
];

describe("the vision tower of Qwen2.5-VL", () => {
  const folder = temporaryFolder();
  // biome-ignore lint/suspicious/noExplicitAny: vectors have fields of their own
  const vectors = flowLayers("qwen25_vision") as any;
  const tensor = (name: string): Tensor => vectors.tensor(name);
  const seen = (name: string): SeenPicture => seenPicture(tensor(name));

  it("sees patches, units and windows as the reference does", () => {
    for (const { image, grid, patches, window_index, window_ends } of vectors.vision) {
      const picture = seen(image);
      assert.deepEqual(picture.units, [grid[1] / 2, grid[2] / 2]);
      if (window_index !== undefined)
        assert.deepEqual(
          window_index,
          picture.order.reduce<number[]>((units, place, unit) => Object.assign(units, { [place]: unit }), []),
        );
      let end = 0;
      if (window_ends !== undefined)
        assert.deepEqual(window_ends, [0, ...picture.windowSizes.map((size) => (end += size))]);
      if (patches === undefined) continue;
      // the reference has them unit by unit, before it sorts units by windows
      const [count, numbers] = picture.patches.shape as [number, number];
      const rows = picture.order.flatMap((place) => [0, 1, 2, 3].map((at) => 4 * place + at));
      const sorted = rows.flatMap((row) => [...picture.patches.data.slice(row * numbers, (row + 1) * numbers)]);
      const expected = tensor(patches);
      assert.ok(layerError(Tensor.from(sorted, [count, numbers]), expected) < 1e-6, patches);
    }
  });

  for (const [form, target] of FORMS)
    it(`computes what the reference does, ${form}`, async () => {
      const graph = new OnnxGraph("vision", target);
      const traced: string[] = [];
      const trace = (name: string, value: Value): void => {
        traced.push(name);
        graph.output(value, name, "float", name === "patch_embed" ? ["N", 32] : [1, "N", 32]);
      };
      buildQwenVision(networkOf(graph, await flowWeights("text_encoders/qwen_2.5_vl_tiny", folder())), CONFIG, trace);
      const session = await graphSession(graph.encode({ overridable: false }));
      for (const { image, out, after = {} } of vectors.vision) {
        const outputs = await session.run(visionFeeds(seen(image), CONFIG) as Parameters<typeof session.run>[0]);
        const error = layerError(outputs.rows!, tensor(out));
        assert.ok(error < TOLERANCE, `${out}: ${error}`);
        for (const name of traced.filter((each) => each.startsWith("blocks.") && after[each] !== undefined)) {
          const expected = tensor(after[name]);
          const error = layerError(Tensor.from(outputs[name]!.data, expected.shape), expected);
          assert.ok(error < TOLERANCE, `${name}: ${error}`);
        }
      }
      await session.release();
    });

  it("takes pictures of any sides, in whole units within its bounds", () => {
    const unitsOf = (height: number, width: number) => seenPicture(Tensor.zeros([1, height, width, 3])).units;
    assert.deepEqual(unitsOf(100, 70), [4, 2]);
    assert.deepEqual(unitsOf(13, 13), [2, 2]);
    assert.deepEqual(unitsOf(1, 400), [1, 40]);
  });
});
