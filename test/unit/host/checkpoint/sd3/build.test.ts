import assert from "node:assert/strict";
import { OnnxGraph } from "#src/host/checkpoint/onnx/graph.js";
import { CPU_TARGET, type Target } from "#src/host/checkpoint/onnx/target.js";
import { buildSd3 } from "#src/host/checkpoint/sd3/build.js";
import { sd3Part } from "#src/host/checkpoint/sd3/recognise.js";
import { networkOf } from "#src/host/checkpoint/weights/network.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { fluxFile, fluxLayers } from "../../../../helpers/models/golden-flux.js";
import { layerError } from "../../../../helpers/models/layers.js";
import { SD3, sd3Feeds, sd3Latent } from "../../../../helpers/models/sd3-feeds.js";
import { graphSession } from "../../../../helpers/models/session.js";

const FORMS: readonly (readonly [string, Target])[] = [
  ["fused", CPU_TARGET],
  ["plain", { attention: "plain", largestHead: 256, matMul: "transposed", convChannels: "fours", halfTypes: [] }],
];
const TOLERANCE = 5e-6;

describe("buildSd3", () => {
  const folder = temporaryFolder();
  const { net, trace, tensor } = fluxLayers("sd3");
  const part = async () => sd3Part(await fluxFile("checkpoints/sd3_part", folder()), "model.diffusion_model.");

  for (const [form, target] of FORMS)
    it(`computes what the reference does, ${form}`, async () => {
      const graph = new OnnxGraph("sd3", target);
      const { config, weights } = await part();
      assert.deepEqual(config, SD3);
      buildSd3(networkOf(graph, weights), config);
      const session = await graphSession(graph.encode({ overridable: false }));
      for (const each of net) {
        const { out } = await session.run(sd3Feeds(each, tensor));
        const expected = tensor(each.out);
        assert.ok(layerError(sd3Latent(out!, expected), expected) < TOLERANCE, each.out);
      }
      await session.release();
    });

  it("has the reference's value after every part", async () => {
    const graph = new OnnxGraph("sd3");
    const expected: Record<string, string> = {};
    for (const [name, names] of Object.entries<string | string[]>(trace.after)) {
      if (typeof names === "string") expected[name] = names;
      else
        for (const [i, each] of names.entries()) expected[`${name}.${["x", "context"][names.length - 1 - i]}`] = each;
    }
    const traced = new Set<string>();
    buildSd3(networkOf(graph, (await part()).weights), SD3, (name, value) => {
      if (expected[name] === undefined) return;
      traced.add(name);
      graph.output(value, name, "float", tensor(expected[name]).shape);
    });
    assert.deepEqual(traced, new Set(Object.keys(expected)));
    const session = await graphSession(graph.encode({ overridable: false }));
    const outputs = await session.run(sd3Feeds(trace, tensor));
    for (const name of traced) assert.ok(layerError(outputs[name]!, tensor(expected[name]!)) < TOLERANCE, name);
    await session.release();
  });
});
