import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { OnnxGraph } from "#src/host/checkpoint/onnx/graph.js";
import { CPU_TARGET, type Target } from "#src/host/checkpoint/onnx/target.js";
import { buildT5, findT5, type T5Config, t5Buckets, t5Part } from "#src/host/checkpoint/text-encoder/t5.js";
import { networkOf } from "#src/host/checkpoint/weights/network.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { headerOf, type Shapes, withKeys } from "../../../../helpers/models/full-size.js";
import { fluxLayers, fluxWeights, fullSizeFlux } from "../../../../helpers/models/golden-flux.js";
import { layerError } from "../../../../helpers/models/layers.js";
import { type Feeds, graphSession } from "../../../../helpers/models/session.js";

const FILE = "text_encoders/t5xxl_fp16";
const CONFIG: T5Config = { hidden: 48, layers: 3, heads: 3, headSize: 64, mlp: 80, vocabulary: 32_128 };
const PLAIN: Target = {
  attention: "plain",
  largestHead: 256,
  matMul: "transposed",
  convChannels: "fours",
  halfTypes: [],
};
const TOLERANCE = 5e-6;

describe("buildT5", () => {
  const folder = temporaryFolder();
  const { t5, t5_trace: traced, tensor } = fluxLayers();

  for (const [form, target] of [
    ["fused", CPU_TARGET],
    ["plain", PLAIN],
  ] as const)
    it(`computes what the reference does, after every part too, ${form}`, async () => {
      const graph = new OnnxGraph("t5", target);
      const names: string[] = [];
      buildT5(networkOf(graph, await fluxWeights(FILE, folder())), CONFIG, (name, value) => {
        if (traced.after[name] === undefined && name !== "embed") return;
        names.push(name);
        const { shape } = tensor(traced.after[name] ?? traced[name]);
        graph.output(value, name, "float", [1, ...shape.slice(0, -2), "S", shape.at(-1) === 22 ? "S" : shape.at(-1)!]);
      });
      assert.deepEqual(new Set(names), new Set(["embed", ...Object.keys(traced.after)]));
      const session = await graphSession(graph.encode({ overridable: false }));
      for (const { ids, out } of t5) {
        const { cond } = await session.run(feedsOf(ids));
        assert.ok(layerError(withoutBatch(cond!, tensor(out)), tensor(out)) < TOLERANCE, out);
      }
      const outputs = await session.run(feedsOf(traced.ids));
      const expected = { ...traced.after, embed: traced.embed, cond: traced.out };
      for (const name of [...names, "cond"]) {
        const value = tensor(expected[name]);
        assert.ok(layerError(withoutBatch(outputs[name]!, value), value) < TOLERANCE, name);
      }
      await session.release();
    });

  it("computes the texts of a batch as it does each", async () => {
    const graph = new OnnxGraph("t5");
    buildT5(networkOf(graph, await fluxWeights(FILE, folder())), CONFIG);
    const session = await graphSession(graph.encode({ overridable: false }));
    const ids: number[][] = [traced.ids, [...traced.ids].reverse()];
    const { buckets } = feedsOf(traced.ids);
    const both = await session.run({ tokens: { int64: ids.flat(), shape: [2, 22] }, buckets: buckets! });
    for (const [index, each] of ids.entries()) {
      const { cond } = await session.run(feedsOf(each));
      const own = Tensor.from(both.cond!.data.subarray(index * cond!.size, (index + 1) * cond!.size), cond!.shape);
      assert.ok(layerError(own, cond!) < TOLERANCE);
    }
    await session.release();
  });

  it("refuses a file without one of its weights", async () => {
    const weights = new Map(await fluxWeights(FILE, folder()));
    weights.delete("encoder.block.2.layer.1.DenseReluDense.wi_1.weight");
    const network = networkOf(new OnnxGraph("t5"), weights);
    await refuses(() => buildT5(network, CONFIG), "model.invalid", /"encoder\.block\.2\..*wi_1\.weight" is missing/);
  });
});

describe("t5Buckets", () => {
  it("are the reference's for every distance", () => {
    const { relative, bucket } = fluxLayers().t5_buckets;
    const length = relative[1] + 1;
    const all = t5Buckets(length);
    // the last query has all keys before it, the first all after it
    assert.deepEqual([...all.slice(-length), ...all.slice(1, length)], bucket);
  });

  it("has a row for each query", () => {
    assert.deepEqual(t5Buckets(3), [0, 17, 18, 1, 0, 17, 2, 1, 0]);
  });
});

const feedsOf = (ids: readonly number[]): Feeds => ({
  tokens: { int64: ids, shape: [1, ids.length] },
  buckets: { int64: t5Buckets(ids.length), shape: [ids.length, ids.length] },
});

const withoutBatch = (value: Tensor, like: Tensor): Tensor =>
  Tensor.from(value.data, value.shape.slice(-like.shape.length));

const { t5xxl, flux1_dev } = fullSizeFlux();
const partOf = (shapes: Shapes) => {
  const file = headerOf(shapes);
  return t5Part(file, findT5(file.weights) ?? assert.fail("no T5 encoder was found"));
};

describe("t5Part", () => {
  const { config } = partOf(t5xxl);

  it("reads the sizes of the full-size encoder, and takes every weight", () => {
    assert.deepEqual(config, { hidden: 4096, layers: 24, heads: 64, headSize: 64, mlp: 10_240, vocabulary: 32_128 });
    const table = "encoder.embed_tokens.weight";
    assert.deepEqual(
      [...partOf({ ...t5xxl, [table]: [32_128, 4096] }).weights.keys()].sort(),
      Object.keys(withKeys(t5xxl, (key) => (key === table ? undefined : key))).sort(),
    );
  });

  it("finds an encoder under any prefix and beside other parts", () => {
    for (const prefix of ["", "text_encoders.t5xxl.transformer.", "t5."]) {
      const shapes = { ...flux1_dev, ...withKeys(t5xxl, (key) => prefix + key), "decoder.block.0.weight": [1] };
      assert.deepEqual(partOf(shapes).config, config);
    }
    assert.equal(findT5(headerOf(flux1_dev).weights), undefined);
  });

  it("reads the token table under its other name", () => {
    const shapes = withKeys(t5xxl, (key) => (key === "shared.weight" ? "encoder.embed_tokens.weight" : key));
    const { weights } = partOf(shapes);
    assert.equal(weights.get("shared.weight")!.key, "encoder.embed_tokens.weight");
  });

  it("refuses relatives by name, and damaged files", async () => {
    const first = withKeys(t5xxl, (key) => key.replace("wi_0", "wi"));
    await refuses(() => partOf(first), "model.unsupported", /version 1\.1.*version 1\.0/);
    const bias = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight";
    const each = { ...t5xxl, [bias.replace(".0.", ".1.")]: [32, 64] };
    await refuses(() => partOf(each), "model.unsupported", /UMT5/);
    await refuses(() => partOf({ ...t5xxl, [bias]: [64, 64] }), "model.unsupported", /32 buckets.*64/);
    await refuses(() => partOf({ ...t5xxl, [bias]: [32, 60] }), "model.invalid", /multiple of 60 heads.*4096/);
    await refuses(() => partOf({ ...t5xxl, "shared.weight": [1000, 4096] }), "model.unsupported", /32100 tokens.*1000/);
    const further = { ...t5xxl, "encoder.block.3.layer.0.SelfAttention.q.bias": [4096] };
    await refuses(() => partOf(further), "model.unsupported", /SelfAttention\.q\.bias/);
    const gap = withKeys(t5xxl, (key) => (key.startsWith("encoder.block.7.") ? undefined : key));
    await refuses(() => partOf(gap), "model.invalid", /"encoder\.block\.7\./);
  });
});
