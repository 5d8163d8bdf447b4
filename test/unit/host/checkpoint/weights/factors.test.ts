import assert from "node:assert/strict";
import { join } from "node:path";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
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
        new RegExp(`received one with "${key}", which stands beside no weight\\.$`),
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
      [{ "a.comfy_quant": json("nothing"), "a.weight_scale": f32([]) }, /"a\.comfy_quant" to be an object in JSON/],
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
