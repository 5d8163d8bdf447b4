import assert from "node:assert/strict";
import { buildClipVision, type ClipVisionConfig } from "#src/host/checkpoint/clip-vision/build.js";
import { clipVisionPart } from "#src/host/checkpoint/clip-vision/recognise.js";
import { listedNetwork } from "#src/host/checkpoint/weights/network.js";
import { refuses } from "../../../../helpers/errors.js";
import { headerOf, type Shapes, withKeys } from "../../../../helpers/models/full-size.js";

const FULL_SIZE: readonly ClipVisionConfig[] = [
  { name: "L", layers: 24, hidden: 1024, mlp: 4096, embedding: 768, activation: "quick-gelu", layout: "hf", heads: 16 },
  { name: "H", layers: 32, hidden: 1280, mlp: 5120, embedding: 1024, activation: "gelu", layout: "hf", heads: 16 },
  { name: "bigG", layers: 48, hidden: 1664, mlp: 8192, embedding: 1280, activation: "gelu", layout: "hf", heads: 16 },
];

function shapesOf(config: ClipVisionConfig): Shapes {
  const network = listedNetwork();
  buildClipVision(network, config);
  return Object.fromEntries(network.listed);
}

describe("clipVisionPart", () => {
  it("reads full-size encoders in both layouts, with other tensors beside them", () => {
    for (const each of FULL_SIZE)
      for (const layout of ["hf", "openclip"] as const) {
        const config = { ...each, layout };
        const shapes = shapesOf(config);
        const others = { "vision_model.embeddings.position_ids": [1, 257], logit_scale: [], "ln_final.weight": [8] };
        const { config: read, weights } = clipVisionPart(headerOf({ ...shapes, ...others }));
        assert.deepEqual(read, config);
        assert.equal(weights.size, Object.keys(shapes).length);
        assert.deepEqual(clipVisionPart(headerOf(withKeys(shapes, (key) => `module.${key}`))).config, config);
      }
  });

  it("refuses other encoders by name, and damaged ones", async () => {
    const shapes = shapesOf(FULL_SIZE[0]!);
    const positions = "vision_model.embeddings.position_embedding.weight";
    const cases: [Shapes, string, RegExp][] = [
      [{ ...shapes, [positions]: [577, 1024] }, "model.unsupported", /received one for pictures of 336 pixels\.$/],
      [{ ...shapes, [positions]: [50, 1024] }, "model.unsupported", /257 positions, received one with 50\.$/],
      [{ ...shapes, "vision_model.embeddings.patch_embedding.bias": [1024] }, "model.unsupported", /a SigLIP model\.$/],
      [{ "encoder.layer.0.layer_scale2.lambda1": [8] }, "model.unsupported", /a DINOv2 model\.$/],
      [shapesOf({ ...FULL_SIZE[0]!, layers: 12 }), "model.unsupported", /24, 32 or 48 layers, received one with 12\.$/],
      [
        { ...shapes, "vision_model.extra.weight": [1] },
        "model.unsupported",
        /unknown weight "vision_model\.extra\.weight"/,
      ],
      [{ a: [1] }, "model.unsupported", /ViT-bigG\/14, received unknown keys such as "[^"]+"\.$/],
      [shapesOf({ ...FULL_SIZE[0]!, hidden: 1000 }), "model.invalid", /a multiple of 16 channels, received 1000\.$/],
      [
        { ...shapes, "visual_projection.weight": [768, 8] },
        "model.invalid",
        /of shape \[768, 1024\], received \[768, 8\]/,
      ],
    ];
    for (const [each, code, pattern] of cases) await refuses(() => clipVisionPart(headerOf(each)), code, pattern);
  });
});
