import assert from "node:assert/strict";
import { join } from "node:path";
import { Tensor } from "latentkit";
import type { Part } from "#src/host/checkpoint/recognition/part.js";
import { buildTextEncoder, type TextEncoderConfig } from "#src/host/checkpoint/text-encoder/build.js";
import { findTextEncoders, textEncoderPart } from "#src/host/checkpoint/text-encoder/recognise.js";
import type { StoredWeight } from "#src/host/checkpoint/weights/stored.js";
import { readValues } from "#src/host/checkpoint/weights/values.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { runBuilt } from "../../../../helpers/models/built.js";
import { goldenLayers, layerError, type TextVector } from "../../../../helpers/models/layers.js";
import { CHECKPOINTS, recognised } from "../../../../helpers/models/recognised.js";
import { f32, weightFile, writeWeights } from "../../../../helpers/models/weight-file.js";

const TOLERANCE = 1e-5;

/** Outputs of an encoder at a layer for each list of ids. */
function encoded(
  { weights, config }: Part<TextEncoderConfig>,
  options: { layer: number; finalNorm: boolean },
  ids: readonly (readonly number[])[],
  embeddings = Tensor.zeros([1, config.hidden]),
): Promise<Record<string, Tensor>[]> {
  const feeds = ids.map((row) => ({ tokens: { int64: row, shape: [row.length / 77, 77] }, embeddings }));
  return runBuilt(weights, (network) => buildTextEncoder(network, config, options), ...feeds);
}

/** A vector of one row of ids, as an encoder gives it. */
const batched = (vector: Tensor): Tensor => Tensor.from(vector.data, [1, ...vector.shape]);

describe("buildTextEncoder", () => {
  const folder = temporaryFolder();

  for (const name of CHECKPOINTS)
    it(`equals the reference in every layer of ${name}`, async () => {
      const { textEncoders } = await recognised(name, folder());
      const { text, tensor } = goldenLayers(name);
      for (const part of textEncoders) {
        const vectors = text.filter(({ encoder }) => encoder === part.config.name);
        assert.ok(vectors.length >= 1);
        const check = async (layer: number, finalNorm: boolean, nameOf: (vector: TextVector) => string | undefined) => {
          const outputs = await encoded(
            part,
            { layer, finalNorm },
            vectors.map(({ ids }) => ids),
          );
          for (const [i, vector] of vectors.entries()) {
            const expected = nameOf(vector);
            if (expected !== undefined)
              assert.ok(layerError(outputs[i]!.cond!, batched(tensor(expected))) < TOLERANCE, expected);
            const pooled = part.config.projection === undefined ? vector.pooled : vector.projected!;
            assert.ok(layerError(outputs[i]!.pooled!, batched(tensor(pooled))) < TOLERANCE, pooled);
          }
        };
        await check(-1, true, ({ last }) => last);
        await check(-2, false, ({ penultimate }) => penultimate);
        await check(-2, true, ({ penultimate_ln }) => penultimate_ln);
        await check(-3, false, ({ hidden_3rd_last }) => hidden_3rd_last);
        await check(-24, false, ({ last }) => last);
      }
    });

  /** The OpenCLIP encoder of SDXL, with its vectors. */
  const openClip = async () => {
    const { textEncoders } = await recognised("sdxl", folder());
    const { text, tensor } = goldenLayers("sdxl");
    return { ...textEncoders[1]!, text: text.filter(({ encoder }) => encoder === "g"), tensor };
  };

  it("pools without the projection if there is none", async () => {
    const { weights, config, text, tensor } = await openClip();
    const part = { weights, config: { ...config, projection: undefined } };
    const outputs = await encoded(
      part,
      { layer: -1, finalNorm: true },
      text.map(({ ids }) => ids),
    );
    for (const [i, { pooled }] of text.entries())
      assert.ok(layerError(outputs[i]!.pooled!, batched(tensor(pooled))) < TOLERANCE);
  });

  it("counts layers from the end of an encoder whose last is not in the file", async () => {
    const { weights, config, text, tensor } = await openClip();
    const part = { weights, config: { ...config, layers: config.layers - 1, missing: 1 } };
    for (const [layer, finalNorm, vectorOf] of [
      [-2, true, ({ penultimate_ln }: TextVector) => penultimate_ln],
      [-1, true, ({ penultimate_ln }: TextVector) => penultimate_ln],
      [-2, false, ({ penultimate }: TextVector) => penultimate],
    ] as const) {
      const outputs = await encoded(part, { layer, finalNorm }, [text[0]!.ids]);
      assert.ok(layerError(outputs[0]!.cond!, batched(tensor(vectorOf(text[0]!)!))) < TOLERANCE);
    }
  });

  it("encodes several chunks at once, each as alone", async () => {
    const { textEncoders } = await recognised("sd1_fp8", folder());
    const ids = goldenLayers("sd1_fp8").text.map((vector) => vector.ids);
    const options = { layer: -1, finalNorm: true };
    const [together] = await encoded(textEncoders[0]!, options, [ids.flat()]);
    const alone = await encoded(textEncoders[0]!, options, ids);
    assert.deepEqual([...together!.cond!.shape], [ids.length, 77, 64]);
    for (const output of ["cond", "pooled"] as const) {
      const data = Float32Array.from(alone.flatMap((each) => [...each[output]!.data]));
      assert.ok(layerError(together![output]!, Tensor.from(data, together![output]!.shape)) < TOLERANCE);
    }
  });

  it("takes ids after the vocabulary from the embeddings", async () => {
    const { textEncoders } = await recognised("sd1_fp8", folder());
    const part = textEncoders[0]!;
    const { ids } = goldenLayers("sd1_fp8").text[1]!;
    const table = part.weights.get("embeddings.token_embedding.weight")!;
    const row = (id: number): StoredWeight => {
      const from = table.from + id * 2 * 64;
      return { ...table, shape: [64], from, to: from + 2 * 64 };
    };
    const rows = await Promise.all([ids[2]!, ids[3]!].map((id) => readValues(row(id))));
    const embeddings = Tensor.from(Float32Array.from([...rows[0]!, ...rows[1]!]), [2, 64]);
    const inverted = ids.map((id, i) => (i === 2 ? 49408 : i === 3 ? 49409 : id));
    const options = { layer: -1, finalNorm: true };
    const [plain] = await encoded(part, options, [ids]);
    const [own] = await encoded(part, options, [inverted], embeddings);
    assert.deepEqual(own!.cond!.data, plain!.cond!.data);
    const [other] = await encoded(part, options, [inverted], Tensor.zeros([2, 64]));
    assert.notDeepEqual(other!.cond!.data, plain!.cond!.data);
  });

  it("computes the same for Hugging Face's keys as for OpenCLIP's", async () => {
    const { weights, config, text, tensor } = await openClip();
    const renamed = new Map<string, StoredWeight>();
    for (const [key, weight] of weights) {
      const name = huggingFaceName(key);
      if (!name.includes("in_proj")) renamed.set(name, weight);
      else
        for (const [i, part] of ["q", "k", "v"].entries()) {
          const bytes = (weight.to - weight.from) / 3;
          const from = weight.from + i * bytes;
          const shape = [config.hidden, ...weight.shape.slice(1)];
          const key = name.replace("in_proj_", `self_attn.${part}_proj.`);
          renamed.set(key, { ...weight, shape, from, to: from + bytes });
        }
    }
    const projection = await readValues(weights.get("text_projection")!);
    const { hidden } = config;
    const values = Array.from(
      { length: hidden * hidden },
      (_, i) => projection[(i % hidden) * hidden + Math.floor(i / hidden)]!,
    );
    const path = writeWeights(join(folder(), "p.safetensors"), {
      "text_projection.weight": f32([hidden, hidden], values),
    });
    renamed.delete("text_projection");
    for (const [key, weight] of (await weightFile(path)).weights) renamed.set(key, weight);
    const file = { name: "h.safetensors", metadata: {}, weights: renamed };
    const part = textEncoderPart(file, findTextEncoders(renamed)[0]!, "g");
    assert.equal(part.config.layout, "hf");
    const outputs = await encoded(
      part,
      { layer: -2, finalNorm: true },
      text.map(({ ids }) => ids),
    );
    for (const [i, vector] of text.entries()) {
      assert.ok(layerError(outputs[i]!.cond!, batched(tensor(vector.penultimate_ln!))) < TOLERANCE);
      assert.ok(layerError(outputs[i]!.pooled!, batched(tensor(vector.projected!))) < TOLERANCE);
    }
  });
});

const NAMES = [
  ["token_embedding.weight", "text_model.embeddings.token_embedding.weight"],
  ["positional_embedding", "text_model.embeddings.position_embedding.weight"],
  ["ln_final.", "text_model.final_layer_norm."],
  ["transformer.resblocks.", "text_model.encoder.layers."],
  [".attn.in_proj", ".in_proj"],
  [".attn.out_proj.", ".self_attn.out_proj."],
  [".ln_1.", ".layer_norm1."],
  [".ln_2.", ".layer_norm2."],
  [".c_fc.", ".fc1."],
  [".c_proj.", ".fc2."],
] as const;

const huggingFaceName = (key: string): string =>
  NAMES.reduce((name, [openClip, huggingFace]) => name.replace(openClip, huggingFace), key);
