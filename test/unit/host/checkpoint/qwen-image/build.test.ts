import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { FLUX_PLACES, fluxAxes, joinedTokens, patchesOf, pictureOf } from "#src/host/checkpoint/flux/patches.js";
import { rotationTables } from "#src/host/checkpoint/networks/sinusoids.js";
import { OnnxGraph, type Value } from "#src/host/checkpoint/onnx/graph.js";
import { CPU_TARGET, type Target } from "#src/host/checkpoint/onnx/target.js";
import { buildQwenImage, type QwenImageConfig, qwenImageEmbeddings } from "#src/host/checkpoint/qwen-image/build.js";
import { qwenImagePositions } from "#src/host/checkpoint/qwen-image/model.js";
import { networkOf } from "#src/host/checkpoint/weights/network.js";
import { cycled } from "#src/tensor/parts.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { flowLayers, flowWeights } from "../../../../helpers/models/golden-flow.js";
import { layerError } from "../../../../helpers/models/layers.js";
import { type Feeds, graphSession } from "../../../../helpers/models/session.js";

const CONFIG: QwenImageConfig = {
  inputs: 64,
  width: 64,
  heads: 2,
  headSize: 32,
  mlp: 256,
  contextWidth: 32,
  blocks: 2,
  hasReferenceTime: false,
};
const FORMS: readonly (readonly [string, Target])[] = [
  ["fused", CPU_TARGET],
  ["plain", { attention: "plain", largestHead: 256, matMul: "transposed", convChannels: "fours", halfTypes: [] }],
];
const PATCHES = "cells-of-channels";
/** Values behind parts, at times of which one ulp is 2e-5 of the largest. */
const TOLERANCE = 1e-5;
const FILE = "diffusion_models/qwen_image_tiny";

describe("buildQwenImage", () => {
  const folder = temporaryFolder();
  const { cases, tensor } = flowLayers("qwen_image");
  const isAtZero = (method: string | undefined) => method === "index_timestep_zero";
  const flat = ({ data, shape }: Tensor): Tensor =>
    Tensor.from(data, shape.length === 5 ? [shape[0]!, shape[1]!, shape[3]!, shape[4]!] : shape);

  // biome-ignore lint/suspicious/noExplicitAny: cases have fields of their own
  function feedsOf({ x: name, context: text, sigma, ref = [], method }: any): Feeds {
    const [x, context] = [flat(tensor(name)), tensor(text)];
    const [items, , height, width] = x.shape as [number, number, number, number];
    const references = ref.map((one: string) => flat(tensor(one))) as Tensor[];
    const sides = references.map(({ shape }) => [shape[2]!, shape[3]!] as const);
    const positions = qwenImagePositions(context.shape[1]!, [height, width], sides, method);
    const { cos, sin } = rotationTables(positions, fluxAxes(CONFIG.headSize), FLUX_PLACES.theta);
    const own = patchesOf(x, PATCHES);
    const embedded = (values: readonly number[]) => cycled(qwenImageEmbeddings(values), items);
    return {
      x: joinedTokens([own, ...references.map((one) => patchesOf(one, PATCHES))]),
      time: embedded(sigma),
      context: cycled(context, items),
      joint_cos: cos,
      joint_sin: sin,
      ...(isAtZero(method) ? { reference_time: embedded([0]), count: { int64: [own.shape[1]!], shape: [1] } } : {}),
    };
  }

  for (const [form, target] of FORMS)
    for (const hasReferenceTime of [false, true])
      it(`computes what the reference does, ${form}${hasReferenceTime ? ", with references at time 0" : ""}`, async () => {
        const graph = new OnnxGraph("qwen-image", target);
        buildQwenImage(networkOf(graph, await flowWeights(FILE, folder())), CONFIG, { hasReferenceTime });
        const session = await graphSession(graph.encode({ overridable: false }));
        const own = cases.filter(({ method }) => isAtZero(method) === hasReferenceTime);
        assert.ok(own.length > 0);
        for (const one of own) {
          const { out } = await session.run(feedsOf(one));
          const expected = flat(tensor(one.out));
          const error = layerError(pictureOf(out!, expected.shape.slice(2) as [number, number], PATCHES), expected);
          assert.ok(error < TOLERANCE, `${one.out}: ${error}`);
        }
        await session.release();
      });

  it("has the reference's value after every part", async () => {
    const traced = cases.filter(({ after, method }) => after !== undefined && !isAtZero(method));
    assert.ok(traced.length > 1);
    const names = new Set<string>(traced.flatMap(({ after }) => Object.keys(after)));
    // it has the norm before the changes, which are one step here, and the last norm likewise
    for (const name of ["transformer_blocks.0.img_norm1", "norm_out"]) names.delete(name);
    const graph = new OnnxGraph("qwen-image");
    const seen = new Set<string>();
    const trace = (name: string, value: Value): void => {
      if (!names.has(name)) return;
      seen.add(name);
      graph.output(
        value,
        name,
        "float",
        [`b ${name}`, `l ${name}`, `c ${name}`].slice(name === "time_text_embed" ? 1 : 0),
      );
    };
    buildQwenImage(networkOf(graph, await flowWeights(FILE, folder())), CONFIG, { trace });
    assert.deepEqual(seen, names);
    const session = await graphSession(graph.encode({ overridable: false }));
    for (const one of traced) {
      const outputs = await session.run(feedsOf(one));
      for (const name of names) {
        if (one.after[name] === undefined) continue;
        const expected = name.includes("norm_") ? byToken(tensor(one.after[name])) : tensor(one.after[name]);
        const error = layerError(Tensor.from(outputs[name]!.data, expected.shape), expected);
        assert.ok(error < TOLERANCE, `${name}: ${error}`);
      }
    }
    await session.release();
  });

  it("gives the same with times of references that are those of the picture", async () => {
    const weights = await flowWeights(FILE, folder());
    const feeds = feedsOf(cases[0]);
    const results: Tensor[] = [];
    for (const hasReferenceTime of [false, true]) {
      const graph = new OnnxGraph("qwen-image");
      buildQwenImage(networkOf(graph, weights), CONFIG, { hasReferenceTime });
      const session = await graphSession(graph.encode({ overridable: false }));
      const more = { reference_time: feeds.time!, count: { int64: [3], shape: [1] } };
      results.push((await session.run(hasReferenceTime ? { ...feeds, ...more } : feeds)).out!);
      await session.release();
    }
    assert.ok(layerError(results[1]!, results[0]!) < 1e-6);
  });

  it("refuses a file without one of its weights", async () => {
    const weights = new Map(await flowWeights(FILE, folder()));
    weights.delete("transformer_blocks.1.attn.to_add_out.bias");
    const network = networkOf(new OnnxGraph("qwen-image"), weights);
    await refuses(
      () => buildQwenImage(network, CONFIG),
      "model.invalid",
      /"transformer_blocks\.1\.attn\.to_add_out\.bias"/,
    );
  });
});

/** [B, heads, L, size] as [B, L, heads, size]. */
function byToken({ data, shape }: Tensor): Tensor {
  const [items, heads, length, size] = shape as [number, number, number, number];
  const out = Tensor.unfilled([items, length, heads, size]);
  for (let row = 0; row < items * heads * length; row++) {
    const [item, head, token] = [Math.floor(row / (heads * length)), Math.floor(row / length) % heads, row % length];
    out.data.set(data.subarray(row * size, (row + 1) * size), ((item * length + token) * heads + head) * size);
  }
  return out;
}
