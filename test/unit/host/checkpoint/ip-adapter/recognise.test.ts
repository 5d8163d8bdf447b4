import assert from "node:assert/strict";
import { ipAdapterPart } from "#src/host/checkpoint/ip-adapter/recognise.js";
import { refuses } from "../../../../helpers/errors.js";
import { headerOf, type Shapes, withKeys } from "../../../../helpers/models/full-size.js";

/** Keys and values of layers, each with these channels. */
const layers = (channels: readonly number[], contextDim: number): Shapes =>
  Object.fromEntries(
    channels.flatMap((width, n) =>
      ["k", "v"].map((part) => [`ip_adapter.${2 * n + 1}.to_${part}_ip.weight`, [width, contextDim]] as const),
    ),
  );

const SD1 = layers([320, 320, 640, 640, 1280, 1280, 1280, 1280, 1280, 640, 640, 640, 320, 320, 320, 1280], 768);
const SDXL = layers(
  [640, 640, 640, 640, ...new Array(50).fill(1280), ...new Array(6).fill(640), ...new Array(10).fill(1280)],
  2048,
);

const base = (contextDim: number, inputs: number): Shapes => ({
  "image_proj.proj.weight": [4 * contextDim, inputs],
  "image_proj.proj.bias": [4 * contextDim],
  "image_proj.norm.weight": [contextDim],
  "image_proj.norm.bias": [contextDim],
});

const FULL_FACE: Shapes = {
  "image_proj.proj.0.weight": [1280, 1280],
  "image_proj.proj.0.bias": [1280],
  "image_proj.proj.2.weight": [768, 1280],
  "image_proj.proj.2.bias": [768],
  "image_proj.proj.3.weight": [768],
  "image_proj.proj.3.bias": [768],
};

function plus(contextDim: number, width: number, heads: number): Shapes {
  const inner = 64 * heads;
  const shapes: Record<string, readonly number[]> = {
    "image_proj.latents": [1, 16, width],
    "image_proj.proj_in.weight": [width, 1280],
    "image_proj.proj_in.bias": [width],
    "image_proj.proj_out.weight": [contextDim, width],
    "image_proj.proj_out.bias": [contextDim],
    "image_proj.norm_out.weight": [contextDim],
    "image_proj.norm_out.bias": [contextDim],
  };
  for (let layer = 0; layer < 4; layer++) {
    const at = `image_proj.layers.${layer}`;
    for (const norm of ["0.norm1", "0.norm2", "1.0"])
      for (const part of ["weight", "bias"]) shapes[`${at}.${norm}.${part}`] = [width];
    shapes[`${at}.0.to_q.weight`] = [inner, width];
    shapes[`${at}.0.to_kv.weight`] = [2 * inner, width];
    shapes[`${at}.0.to_out.weight`] = [width, inner];
    shapes[`${at}.1.1.weight`] = [4 * width, width];
    shapes[`${at}.1.3.weight`] = [width, 4 * width];
  }
  return shapes as Shapes;
}

describe("ipAdapterPart", () => {
  it("reads the full-size files of both families", () => {
    const cases: [Shapes, boolean, string, number][] = [
      [{ ...base(768, 1024), ...SD1 }, false, "base", 1024],
      [{ ...base(768, 1280), ...SD1 }, false, "base", 1280],
      [{ ...FULL_FACE, ...SD1 }, false, "full-face", 1280],
      [{ ...plus(768, 768, 12), ...SD1 }, false, "plus", 1280],
      [{ ...base(2048, 1024), ...SDXL }, true, "base", 1024],
      [{ ...plus(2048, 1280, 20), ...SDXL }, true, "plus", 1280],
    ];
    for (const [shapes, isSdxl, kind, inputs] of cases) {
      const part = ipAdapterPart(headerOf(shapes));
      const { config } = part.projection;
      assert.deepEqual([part.isSdxl, config.kind, config.inputs], [isSdxl, kind, inputs]);
      assert.equal(part.projection.weights.size + part.keys.weights.size, Object.keys(shapes).length);
      const renamed = withKeys(shapes, (key) => key.replace("ip_adapter.", "adapter_modules."));
      assert.deepEqual(ipAdapterPart(headerOf(renamed)).keys.config, part.keys.config);
    }
  });

  it("refuses other kinds by name, and damaged files", async () => {
    const file = { ...base(768, 1024), ...SD1 };
    const { "image_proj.proj.3.weight": _, ...unnormed } = FULL_FACE;
    const cases: [Shapes, string, RegExp][] = [
      [
        { ...file, "ip_adapter.0.to_q_lora.down.weight": [8, 8] },
        "model.unsupported",
        /FaceID, which needs InsightFace\.$/,
      ],
      [
        { ...file, "image_proj.perceiver_resampler.proj_in.weight": [8, 8] },
        "model.unsupported",
        /an IPAdapter FaceID/,
      ],
      [{ ...unnormed, ...SD1 }, "model.unsupported", /FaceID or a portrait adapter, which need InsightFace\.$/],
      [{ ...plus(2048, 2048, 16), ...SDXL }, "model.unsupported", /an IPAdapter of Kolors\.$/],
      [SD1, "model.unsupported", /received an IPAdapter\.$/],
      [{ ...file, "ip_adapter.1.to_v_ip.weight": [8, 8] }, "model.invalid", /of shape \[320, 768\], received \[8, 8\]/],
      [
        { ...file, "ip_adapter.33.to_x.weight": [8, 8] },
        "model.unsupported",
        /unknown weight "ip_adapter\.33\.to_x\.weight"/,
      ],
      [{ ...base(770, 1024), ...SD1 }, "model.invalid", /a multiple of 768 rows, received 3080\.$/],
      [
        { ...base(768, 1024), "ip_adapter.1.to_v_ip.weight": [8, 8] },
        "model.invalid",
        /ip_adapter\.N\.to_k_ip, received none/,
      ],
      [
        { ...plus(768, 768, 12), ...SD1, "image_proj.layers.0.0.to_q.weight": [100, 768] },
        "model.invalid",
        /heads of 64/,
      ],
    ];
    for (const [each, code, pattern] of cases) await refuses(() => ipAdapterPart(headerOf(each)), code, pattern);
  });
});
