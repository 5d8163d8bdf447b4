import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { invokeNode, Tensor } from "latentkit";
import { createCheckpointHost } from "latentkit/models";
import { causalMask } from "#src/host/checkpoint/networks/layers.js";
import { sectionedTables } from "#src/host/checkpoint/networks/sinusoids.js";
import { OnnxGraph } from "#src/host/checkpoint/onnx/graph.js";
import { CPU_TARGET, type Target } from "#src/host/checkpoint/onnx/target.js";
import { buildQwen3, type Qwen3Config } from "#src/host/checkpoint/text-encoder/qwen3.js";
import { sequenceOf } from "#src/host/checkpoint/text-encoder/qwen25.js";
import { recogniseTextEncoders } from "#src/host/checkpoint/text-encoder/recognise.js";
import { networkOf } from "#src/host/checkpoint/weights/network.js";
import { readSafetensors } from "#src/io/safetensors.js";
import { narrowed } from "#src/tensor/parts.js";
import { refuses } from "../../../../helpers/errors.js";
import { suiteFolder } from "../../../../helpers/folders.js";
import { flowShapes } from "../../../../helpers/models/flow-shapes.js";
import { headerOf, type Shapes, withKeys } from "../../../../helpers/models/full-size.js";
import { flowLayers, flowWeights } from "../../../../helpers/models/golden-flow.js";
import { layerError } from "../../../../helpers/models/layers.js";
import { graphSession } from "../../../../helpers/models/session.js";
import { writeWeights } from "../../../../helpers/models/weight-file.js";

const CONFIG: Qwen3Config = {
  version: "2.5-vl",
  hidden: 32,
  layers: 3,
  heads: 2,
  groups: 1,
  headSize: 16,
  mlp: 80,
  vocabulary: 152_064,
};
const TOLERANCE = 5e-6;
const FORMS: readonly (readonly [string, Target])[] = [
  ["fused", CPU_TARGET],
  ["plain", { attention: "plain", largestHead: 256, matMul: "transposed", convChannels: "fours", halfTypes: [] }],
];
const FILE = "text_encoders/qwen_2.5_vl_tiny";
const rowsOf = (value: Tensor) => Tensor.from(value.data, value.shape.slice(-2));
const recognised = (shapes: Shapes) => recogniseTextEncoders(headerOf(shapes));
const SHAPES = flowShapes("qwen2.5_vl_7b");

describe("the text encoder Qwen2.5-VL", () => {
  const folder = suiteFolder();
  const { cases, tensor } = flowLayers("qwen25");
  // biome-ignore lint/suspicious/noExplicitAny: vectors have fields of their own
  const { edit } = flowLayers("qwen25_vision") as any;
  const vectors = flowLayers("qwen25_vision");

  for (const [form, target] of FORMS)
    it(`computes what the reference does, after every layer too, ${form}`, async () => {
      const graph = new OnnxGraph("qwen25", target);
      const traced: string[] = [];
      buildQwen3(networkOf(graph, await flowWeights(FILE, folder())), CONFIG, (name, value) => {
        traced.push(name);
        graph.output(value, name, "float", ["B", "S", CONFIG.hidden]);
      });
      assert.deepEqual(traced, ["layers.0", "layers.1", "layers.2"]);
      const session = await graphSession(graph.encode({ overridable: false }));
      for (const { ids, dropped, cond, after = {}, text } of cases) {
        const { length } = ids;
        const { order, positions } = sequenceOf(ids, []);
        const { cos, sin } = sectionedTables(positions, [2, 3, 3], 1e6);
        const outputs = await session.run({
          tokens: { int64: ids, shape: [1, length] },
          pictures: Tensor.zeros([1, CONFIG.hidden]),
          order: { int64: order, shape: [length] },
          mask: Tensor.from(causalMask(length), [1, 1, length, length]),
          text_cos: cos,
          text_sin: sin,
        });
        const kept = narrowed(outputs.cond!, 1, dropped, length - dropped);
        assert.ok(layerError(rowsOf(kept), rowsOf(tensor(cond))) < TOLERANCE, text);
        if (after.norm !== undefined)
          assert.ok(layerError(rowsOf(outputs.cond!), rowsOf(tensor(after.norm))) < TOLERANCE, "norm");
        for (const name of traced)
          if (after[name] !== undefined)
            assert.ok(layerError(rowsOf(outputs[name]!), rowsOf(tensor(after[name]))) < TOLERANCE, name);
      }
      await session.release();
    });

  it("reads prompts with pictures as the reference does", async () => {
    const models = join(folder(), "models");
    mkdirSync(join(models, "text_encoders"), { recursive: true });
    await flowWeights(FILE, join(models, "text_encoders"));
    const host = createCheckpointHost({ models });
    try {
      const name = "qwen_2.5_vl_tiny.safetensors";
      const clip = await host.loadFile!("text_encoders", name, undefined, { type: "qwen_image" });
      for (const one of edit) {
        const image = vectors.tensor(one.image);
        const half = Tensor.from(image.data.slice(0, 50 * image.shape[2]! * 3), [1, 50, ...image.shape.slice(2)]);
        const pictures =
          one.node === "TextEncodeQwenImageEdit"
            ? { image }
            : { image1: image, ...(one.images === 2 ? { image2: half } : {}) };
        const { result } = await invokeNode(one.node, { clip, prompt: one.prompt, ...pictures }, { host });
        const [[cond]] = result[0] as [[Tensor]];
        assert.equal(cond.shape[1], one.tokens - one.dropped);
        const width = cond.shape[2]!;
        const rows = one.rows.map((row: number) => [...cond.data.slice(row * width, (row + 1) * width)]);
        const error = layerError(Tensor.from(rows.flat(), [rows.length, width]), rowsOf(vectors.tensor(one.cond)));
        assert.ok(error < 1e-5, `${one.node}: ${error}`);
      }
      const text = (clip.encodeTexts as NonNullable<typeof clip.encodeTexts>).bind(clip);
      await refuses(text({ t5xxl: "a" }, []), "value.invalid", /expected a text .* qwen25_7b, received "t5xxl"/);
      const image = vectors.tensor(edit[0].image);
      await refuses(text({ qwen25_7b: "a" }, [image]), "value.invalid", /<\|image_pad\|> for each of 1 pictures/);
      const batch = Tensor.zeros([2, 8, 8, 3]);
      await refuses(text({ qwen25_7b: "<|image_pad|>" }, [batch]), "tensor.bad-shape", /expected one picture/);
      const expected = /expected a prompt of at most 4096 tokens, received 5039/;
      await refuses(clip.encodeText!("1".repeat(5000)), "value.out-of-range", expected);
      for (const type of ["hunyuan_image", "longcat_image"])
        await refuses(
          host.loadFile!("text_encoders", name, undefined, { type }),
          "model.unsupported",
          new RegExp(`received type "${type}"`),
        );
    } finally {
      await host.close!();
    }
  });

  it("does not see pictures without its vision tower", async () => {
    const models = join(folder(), "blind");
    mkdirSync(join(models, "text_encoders"), { recursive: true });
    const own = await flowWeights(FILE, folder());
    const { tensors } = readSafetensors(readFileSync([...own.values()][0]!.file));
    const kept = [...tensors].filter(([key]) => !key.startsWith("visual."));
    writeWeights(join(models, "text_encoders/blind.safetensors"), Object.fromEntries(kept));
    const host = createCheckpointHost({ models });
    try {
      const clip = await host.loadFile!("text_encoders", "blind.safetensors", undefined, { type: "qwen_image" });
      const [entry] = await clip.encodeText!("a photo of a cat");
      assert.ok(layerError(rowsOf(entry![0]), rowsOf(tensor("qwen25.1.cond"))) < TOLERANCE);
      const encoded = clip.encodeTexts!({ qwen25_7b: "<|image_pad|>" }, [Tensor.full([1, 56, 56, 3], 0.5)]);
      await refuses(encoded, "model.invalid", /^text encoder Qwen2\.5-VL of blind\.safetensors has no vision tower/);
    } finally {
      await host.close!();
    }
  });

  it("is read in full size, with its vision tower, and without one", () => {
    const prefix = "text_encoders.qwen25_7b.transformer.";
    for (const shapes of [SHAPES, withKeys(SHAPES, (key) => prefix + key)]) {
      const [found] = recognised(shapes);
      assert.ok(found?.kind === "qwen2.5-vl");
      assert.deepEqual(found.part.config, {
        version: "2.5-vl",
        hidden: 3584,
        layers: 28,
        heads: 28,
        groups: 4,
        headSize: 128,
        mlp: 18_944,
        vocabulary: 152_064,
      });
      assert.deepEqual(found.tower!.config, {
        width: 1280,
        heads: 16,
        headSize: 80,
        mlp: 3420,
        blocks: 32,
        hidden: 3584,
      });
      const used = found.part.weights.size + found.tower!.weights.size;
      // the words' table backwards is not needed
      assert.equal(used, Object.keys(SHAPES).filter((key) => !key.startsWith("lm_head")).length);
    }
    const [blind] = recognised(withKeys(SHAPES, (key) => (key.startsWith("visual.") ? undefined : key)));
    assert.ok(blind?.kind === "qwen2.5-vl" && blind.tower === undefined);
  });

  it("is refused if it is another one, or damaged, with the key of the file", async () => {
    const cases: [Shapes, "model.unsupported" | "model.invalid", RegExp][] = [
      [
        {
          ...SHAPES,
          "model.embed_tokens.weight": [151936, 2048],
          "model.layers.0.self_attn.k_proj.weight": [256, 2048],
        },
        "model.unsupported",
        /received the one of 3 billion/,
      ],
      [{ ...SHAPES, "model.layers.4.self_attn.q_norm.weight": [128] }, "model.unsupported", /unknown weight/],
      [{ ...SHAPES, "visual.blocks.3.extra.weight": [1] }, "model.unsupported", /unknown weight "visual\.blocks\.3/],
      [
        { ...SHAPES, "model.layers.3.self_attn.v_proj.bias": [1] },
        "model.invalid",
        /layers\.3\.self_attn\.v_proj\.bias/,
      ],
      [{ ...SHAPES, "visual.merger.ln_q.weight": [80] }, "model.invalid", /"visual\.merger\.ln_q\.weight" of shape/],
      [
        { ...SHAPES, "visual.patch_embed.proj.weight": [1290, 3, 2, 14, 14] },
        "model.invalid",
        /multiple of 80 or 16 numbers, received 1290/,
      ],
    ];
    for (const [shapes, code, pattern] of cases) await refuses(() => recognised(shapes), code, pattern);
  });
});

describe("sequenceOf", () => {
  const PAD = 151_655;

  it("puts the units of pictures at their places, and counts time, rows and columns", () => {
    const { order, positions } = sequenceOf([7, PAD, 8, PAD, 9], [[2, 3]]);
    assert.deepEqual(order, [0, 5, 6, 7, 8, 9, 10, 2, 3, 4]);
    assert.deepEqual(positions, [
      [0, 0, 0],
      [1, 1, 1],
      [1, 1, 2],
      [1, 1, 3],
      [1, 2, 1],
      [1, 2, 2],
      [1, 2, 3],
      [4, 4, 4],
      // a place without a picture is a word
      [5, 5, 5],
      [6, 6, 6],
    ]);
  });
});
