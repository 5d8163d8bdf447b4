import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Network } from "#src/host/checkpoint/weights/network.js";
import type { WeightMap } from "#src/host/checkpoint/weights/stored.js";
import { readSafetensors, type StoredTensor, toTensor } from "#src/io/safetensors.js";
import { refuses } from "../../../../helpers/errors.js";
import { root, suiteFolder, temporaryFolder } from "../../../../helpers/folders.js";
import { goldenBytes } from "../../../../helpers/golden-file.js";
import { computedFromPacked } from "../../../../helpers/models/packed-graph.js";
import { f32, type RawTensor, weightFile, writeWeights } from "../../../../helpers/models/weight-file.js";

const EIGHT_BITS: RawTensor = { dtype: "F8_E4M3", shape: [2], bytes: Uint8Array.of(0x38, 0xb8) };
const json = (value: unknown): RawTensor => {
  const bytes = Buffer.from(typeof value === "string" ? value : JSON.stringify(value));
  return { dtype: "U8", shape: [bytes.length], bytes };
};

describe("withFactors", () => {
  const folder = temporaryFolder();
  const opened = (tensors: Record<string, RawTensor>, metadata?: Record<string, string>) =>
    weightFile(writeWeights(join(folder(), "w.safetensors"), tensors, metadata));

  it("puts factors beside their weights and leaves out what is for products in 8 bits", async () => {
    const { weights } = await opened(
      {
        scaled_fp8: f32([0]),
        "a.weight": EIGHT_BITS,
        "a.weight_scale": f32([], [3]),
        "a.input_scale": f32([], [5]),
        "a.comfy_quant": json({ format: "float8_e4m3fn", full_precision_matrix_mult: true }),
        "b.weight": EIGHT_BITS,
        "b.scale_input": f32([1]),
        "b.scale_weight": f32([1], [2]),
        "c.weight": { ...EIGHT_BITS, dtype: "F8_E5M2" },
        "c.comfy_quant": json({ format: "float8_e5m2" }),
        "c.weight_scale": f32([1]),
        "d.in_proj_weight": EIGHT_BITS,
        "d.in_proj.weight_scale": f32([1]),
        "d.in_proj.comfy_quant": json({ format: "float8_e4m3fn", convrot: false }),
        "f.in_proj_weight": EIGHT_BITS,
        "f.in_proj_scale_weight": f32([]),
        "g.in_proj_weight": EIGHT_BITS,
        "g.in_proj_weight_scale": f32([]),
        logit_scale: f32([]),
        "h.logit_scale": f32([]),
        "e.weight": EIGHT_BITS,
      },
      {
        _quantization_metadata: JSON.stringify({
          layers: { a: { format: "float8_e4m3fn" }, x: { format: "float8_e5m2" } },
        }),
      },
    );
    assert.deepEqual(
      [...weights].map(([key, { factor }]) => [key, factor?.key]),
      [
        ["scaled_fp8", undefined],
        ["a.weight", "a.weight_scale"],
        ["b.weight", "b.scale_weight"],
        ["c.weight", "c.weight_scale"],
        ["d.in_proj_weight", "d.in_proj.weight_scale"],
        ["f.in_proj_weight", "f.in_proj_scale_weight"],
        ["g.in_proj_weight", "g.in_proj_weight_scale"],
        ["logit_scale", undefined],
        ["h.logit_scale", undefined],
        ["e.weight", undefined],
      ],
    );
  });

  it("refuses formats that are not known, by name and key", async () => {
    for (const [format, pattern] of [
      [{ format: "int8" }, /float8_e4m3fn, float8_e5m2, mxfp8 or nvfp4, received "int8", by "a\.comfy_quant"\.$/],
      [{ format: "__proto__x" }, /received "__proto__x"/],
      [{ format: 5 }, /received 5, by/],
      [{}, /received none, by "a\.comfy_quant"\.$/],
      [
        { format: "float8_e4m3fn", convrot: true, group_size: 64 },
        /received one with the further setting "convrot", by "a\.comfy_quant"\.$/,
      ],
    ] as const)
      await refuses(
        opened({ "a.weight": EIGHT_BITS, "a.weight_scale": f32([]), "a.comfy_quant": json(format) }),
        "model.unsupported",
        /^Model "w\.safetensors": /,
        pattern,
      );
    const metadata = { _quantization_metadata: JSON.stringify({ layers: { "x.y": { format: "int4" } } }) };
    const work = opened({ "a.weight": EIGHT_BITS }, metadata);
    await refuses(work, "model.unsupported", /received "int4", by "_quantization_metadata of x\.y"/);
  });

  it("names a long key with its ending", async () => {
    const layer = "model.diffusion_model.input_blocks.1.1.transformer_blocks.0.attn1.to_k";
    const work = opened({ [`${layer}.weight`]: EIGHT_BITS, [`${layer}.comfy_quant`]: json({}) });
    const { message } = await refuses(work, "model.unsupported");
    assert.ok(message.endsWith(`by "${layer}.comfy_quant".`), message);
  });

  it("refuses a factor or a format beside no weight, by key", async () => {
    for (const key of ["b.weight_scale", "x.a.scale_weight", "b.comfy_quant", "scales.a.weight"])
      await refuses(
        opened({ "a.weight": EIGHT_BITS, [key]: f32([]) }),
        "model.unsupported",
        new RegExp(`received one with "${key}", which belongs to no weight\\.$`),
      );
  });

  it("refuses formats and factors that contradict the weight", async () => {
    const format = json({ format: "float8_e4m3fn" });
    const cases: [Record<string, RawTensor>, RegExp][] = [
      [{ "a.comfy_quant": format }, /a factor of "a\.weight", as "a\.comfy_quant" says, received none/],
      [
        { "a.comfy_quant": json({ format: "float8_e5m2" }), "a.weight_scale": f32([]) },
        /"a\.weight" of F8_E5M2, as "a\.comfy_quant" says, received F8_E4M3/,
      ],
      [{ "a.comfy_quant": json("nothing"), "a.weight_scale": f32([]) }, /"a\.comfy_quant" to be a JSON object/],
      [{ "a.comfy_quant": json("x".repeat(5000)) }, /"a\.comfy_quant" of at most 4096 bytes, received 5000/],
      [
        { "a.weight_scale": f32([]), "a.scale_weight": f32([]) },
        /one factor of "a\.weight", received "a\.weight_scale" and "a\.scale_weight"/,
      ],
    ];
    for (const [tensors, pattern] of cases)
      await refuses(opened({ "a.weight": EIGHT_BITS, ...tensors }), "model.invalid", pattern);
    for (const text of ["[", "[]", '{"layers":[]}', "x".repeat(2 ** 22 + 1)])
      await refuses(
        opened({ "a.weight": EIGHT_BITS }, { _quantization_metadata: text }),
        "model.invalid",
        /_quantization_metadata/,
      );
  });
});

const FOLDER = join(root, "test/golden/models-flux/quant");
/** Rows and columns of all layers, without padding. */
const [ROWS, COLUMNS] = [40, 128];

describe("weights of 4 and 8 bits with scales of their own", () => {
  const folder = suiteFolder();
  const layers = readSafetensors(goldenBytes(join(FOLDER, "layers.safetensors"))!).tensors;
  const values = readSafetensors(goldenBytes(join(FOLDER, "values.safetensors"))!).tensors;
  const x = toTensor(layers.get("x")!);
  let weights: WeightMap;
  before(async () => {
    const path = join(folder(), "layers.safetensors");
    writeFileSync(path, goldenBytes(join(FOLDER, "layers.safetensors"))!);
    weights = (await weightFile(path)).weights;
  });

  const LAYERS = [
    ["mxfp8", "MXFP8", 64, 0],
    ["nvfp4", "NVFP4", 48, 0],
    ["nf4", "NF4", 40, 1e-7],
    ["nf4n", "NF4", 40, 1e-7],
  ] as const;

  it("are read with their types and shapes, and nothing stays beside them", () => {
    for (const [layer, type, rows] of LAYERS) {
      const { dtype, shape } = weights.get(`${layer}.weight`)!;
      assert.deepEqual([dtype, shape], [type, [rows, COLUMNS]]);
    }
    assert.deepEqual([...weights.keys()].sort(), ["fp8.weight", ...LAYERS.map(([l]) => `${l}.weight`), "x"].sort());
  });

  for (const [layer, , rows, tolerance] of LAYERS) {
    it(`are expanded to the golden values: ${layer}`, async () => {
      const build = ({ graph, ...network }: Network): void =>
        graph.output(network.weight(`${layer}.weight`, [rows, COLUMNS]), "out", "float", [rows, COLUMNS]);
      const { out } = await computedFromPacked(folder(), weights, build, {});
      const expected = toTensor(values.get(`${layer}.weight`)!).data;
      const own = out!.data.subarray(0, ROWS * COLUMNS);
      if (tolerance === 0) assert.deepEqual(own, expected);
      else for (const [i, value] of expected.entries()) assert.ok(Math.abs(own[i]! - value) <= tolerance);
    });

    it(`have the product of the golden values: ${layer}`, async () => {
      let isPacked = false;
      const build = (network: Network): void => {
        const { graph } = network;
        const input = graph.input("x", "float", ["M", COLUMNS]);
        const product = network.quantisedProduct(`${layer}.weight`, [rows, COLUMNS], input);
        isPacked = product !== undefined;
        const whole = () => graph.node("Transpose", [network.weight(`${layer}.weight`, [rows, COLUMNS])]);
        graph.output(product ?? graph.node("MatMul", [input, whole()]), "out", "float", ["M", rows]);
      };
      const { out } = await computedFromPacked(folder(), weights, build, { x });
      assert.equal(isPacked, layer !== "mxfp8");
      const weight = toTensor(values.get(`${layer}.weight`)!).data;
      const expected: number[] = [];
      for (let m = 0; m < x.shape[0]!; m++)
        for (let n = 0; n < ROWS; n++) {
          let sum = 0;
          for (let k = 0; k < COLUMNS; k++) sum += x.data[m * COLUMNS + k]! * weight[n * COLUMNS + k]!;
          expected.push(sum);
        }
      const largest = expected.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
      for (const [i, value] of expected.entries()) {
        const actual = out!.data[Math.floor(i / ROWS) * rows + (i % ROWS)]!;
        assert.ok(Math.abs(actual - value) <= 1e-6 * largest, `${i}: ${actual} is not ${value}`);
      }
    });
  }

  describe("are refused", () => {
    const raw = ({ dtype, shape, bytes }: StoredTensor): RawTensor => ({ dtype, shape, bytes });
    /** A file with the tensors of one layer, of which some are others, or absent. */
    const opened = (layer: string, changes: Readonly<Record<string, RawTensor | undefined>>) => {
      const own = [...layers]
        .filter(([key]) => key.startsWith(`${layer}.`))
        .map(([key, one]) => [key, raw(one)] as const);
      const all = { ...Object.fromEntries(own), ...changes };
      const kept = Object.entries(all).filter((entry): entry is [string, RawTensor] => entry[1] !== undefined);
      return weightFile(writeWeights(join(folder(), "bad.safetensors"), Object.fromEntries(kept)));
    };
    const text = (value: object): RawTensor => {
      const bytes = Buffer.from(JSON.stringify(value));
      return { dtype: "U8", shape: [bytes.length], bytes };
    };
    const bytes = (count: number): RawTensor => ({ dtype: "U8", shape: [count], bytes: new Uint8Array(count) });
    const STATE = "nf4.weight.quant_state.bitsandbytes__nf4";
    const NESTED = "nf4n.weight.quant_state.bitsandbytes__nf4";
    const state = { quant_type: "nf4", blocksize: 64, shape: [ROWS, COLUMNS] };
    type Case = readonly [title: string, layer: string, changes: Record<string, RawTensor | undefined>, RegExp];
    const cases: readonly Case[] = [
      [
        "mxfp8 without scales",
        "mxfp8",
        { "mxfp8.weight_scale": undefined },
        /512 scales of "mxfp8.weight" in U8, received none/,
      ],
      ["mxfp8 with too few scales", "mxfp8", { "mxfp8.weight_scale": bytes(4) }, /received U8 \[4\]/],
      [
        "mxfp8 of other bytes",
        "mxfp8",
        { "mxfp8.weight": { ...bytes(64 * 128), shape: [64, 128] } },
        /of F8_E4M3 with rows/,
      ],
      [
        "nvfp4 without a second factor",
        "nvfp4",
        { "nvfp4.weight_scale_2": undefined },
        /"nvfp4.weight_scale_2" of one number/,
      ],
      ["nvfp4 with two second factors", "nvfp4", { "nvfp4.weight_scale_2": f32([2]) }, /received F32 \[2\]/],
      [
        "nf4 without magnitudes",
        "nf4",
        { "nf4.weight.absmax": undefined },
        /"nf4.weight.absmax" of 80 values in F32, received none/,
      ],
      ["nf4 without a table", "nf4", { "nf4.weight.quant_map": undefined }, /"nf4.weight.quant_map" of 16 values/],
      [
        "nf4 of another shape",
        "nf4",
        { [STATE]: text({ ...state, shape: [41, 128] }) },
        /2624 bytes of "nf4.weight", received 2560/,
      ],
      [
        "nf4 of a shape too large",
        "nf4",
        { [STATE]: text({ ...state, shape: [2 ** 40, 2 ** 40] }) },
        /bytes of "nf4.weight"/,
      ],
      ["nf4 in groups of none", "nf4", { [STATE]: text({ ...state, blocksize: 0 }) }, /a shape that its groups divide/],
      ["nf4 in odd groups", "nf4", { [STATE]: text({ ...state, blocksize: 5 }) }, /a shape that its groups divide/],
      [
        "nested magnitudes without an offset",
        "nf4n",
        { [NESTED]: text({ ...state, nested_blocksize: 256 }) },
        /with nested_blocksize and nested_offset/,
      ],
      [
        "nested magnitudes without a table",
        "nf4n",
        { "nf4n.weight.nested_quant_map": undefined },
        /"nf4n.weight.nested_quant_map" of 256/,
      ],
    ];
    for (const [title, layer, changes, pattern] of cases)
      it(title, () => refuses(opened(layer, changes), "model.invalid", pattern));

    it("other types and other tables, as what is not known", async () => {
      const fp4 = { [STATE]: text({ ...state, quant_type: "fp4" }) };
      await refuses(opened("nf4", fp4), "model.unsupported", /of the type nf4, received "fp4"/);
      const table = { "nf4.weight.quant_map": f32([16]) };
      await refuses(opened("nf4", table), "model.unsupported", /the values of NF4 in "nf4.weight.quant_map"/);
    });
  });
});
