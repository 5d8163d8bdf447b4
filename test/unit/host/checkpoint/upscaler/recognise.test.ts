import assert from "node:assert/strict";
import { buildUpscaler, type RrdbConfig, type UpscalerConfig } from "#src/host/checkpoint/upscaler/build.js";
import { upscalerPart } from "#src/host/checkpoint/upscaler/recognise.js";
import { listedNetwork } from "#src/host/checkpoint/weights/network.js";
import { refuses } from "../../../../helpers/errors.js";
import { fullSizeShapes, headerOf, type Shapes, withKeys } from "../../../../helpers/models/full-size.js";

const RRDB: RrdbConfig = { kind: "rrdb", channels: 64, growth: 32, blocks: 23, doublings: 2, unshuffle: 1, scale: 4 };

function shapesOf(config: UpscalerConfig): Shapes {
  const network = listedNetwork();
  buildUpscaler(network, config);
  return Object.fromEntries(network.listed);
}

/** Keys of ESRGAN's first version, layers after the blocks being numbered. */
function oldKeys(config: RrdbConfig): Shapes {
  // upsampling, convolution, activation for each doubling, then convolution, activation, convolution
  const after = [...Array.from({ length: config.doublings }, (_, i) => 3 * i + 3), 3 * config.doublings + 2];
  after.push(3 * config.doublings + 4);
  const names = [...Array.from({ length: config.doublings }, (_, i) => `conv_up${i + 1}`), "conv_hr", "conv_last"];
  return withKeys(shapesOf(config), (key) => {
    const [layer, ...rest] = key.split(".");
    const index = names.indexOf(layer!);
    if (index >= 0) return `model.${after[index]}.${rest[0]}`;
    if (layer === "conv_first") return `model.0.${rest[0]}`;
    if (layer === "conv_body") return `model.1.sub.${config.blocks}.${rest[0]}`;
    const [block, part, conv, kind] = rest;
    return `model.1.sub.${block}.${part!.toUpperCase()}.${conv}.0.${kind}`;
  });
}

const ESRGAN_NAMES = [
  ["conv_body", "trunk_conv"],
  ["body.", "RRDB_trunk."],
  [".rdb", ".RDB"],
  ["conv_up", "upconv"],
  ["conv_hr", "HRconv"],
] as const;

describe("upscalerPart", () => {
  it("reads ESRGAN in three ways of naming", () => {
    const project = withKeys(shapesOf(RRDB), (key) =>
      ESRGAN_NAMES.reduce((name, [from, to]) => name.replace(from, to), key),
    );
    for (const shapes of [
      shapesOf(RRDB),
      project,
      oldKeys(RRDB),
      withKeys(shapesOf(RRDB), (key) => `params_ema.${key}`),
    ])
      assert.deepEqual(upscalerPart(headerOf(shapes)).config, RRDB);
    assert.ok("model.10.weight" in oldKeys(RRDB));
  });

  it("reads every factor", () => {
    for (const [doublings, unshuffle, scale] of [
      [0, 1, 1],
      [1, 1, 2],
      [3, 1, 8],
      [2, 2, 2],
      [2, 4, 1],
    ] as const) {
      const config: RrdbConfig = { ...RRDB, blocks: 3, doublings, unshuffle, scale };
      assert.deepEqual(upscalerPart(headerOf(shapesOf(config))).config, config);
      assert.deepEqual(upscalerPart(headerOf(oldKeys(config))).config, config);
    }
    for (const scale of [1, 2, 4]) {
      const config: UpscalerConfig = { kind: "compact", channels: 64, convolutions: 32, scale };
      assert.deepEqual(upscalerPart(headerOf(shapesOf(config))).config, config);
    }
  });

  it("refuses other networks by name, and damaged ones with the key of the file", async () => {
    const old = oldKeys(RRDB);
    const compact = shapesOf({ kind: "compact", channels: 64, convolutions: 4, scale: 4 });
    const cases: [Shapes, string, RegExp][] = [
      [
        { "layers.0.residual_group.blocks.0.attn.relative_position_bias_table": [1] },
        "model.unsupported",
        /upscale model/,
      ],
      [fullSizeShapes().sd2, "model.unsupported", /received a Stable Diffusion checkpoint/],
      [{ ...old, "model.0.weight": [64, 1, 3, 3] }, "model.unsupported", /1 input channels/],
      [{ ...old, "model.1.sub.4.RDB2.conv1x1.weight": [32, 64, 1, 1] }, "model.unsupported", /RDB2\.conv1x1\.weight/],
      [{ ...old, "model.1.sub.4.RDB2.conv3.0.bias": [3] }, "model.invalid", /"model\.1\.sub\.4\.RDB2\.conv3\.0\.bias"/],
      [withKeys(old, (key) => (key.includes("sub.7.") ? undefined : key)), "model.invalid", /"model\.1\.sub\.7\.RDB1/],
      [{ ...compact, "body.10.weight": [47, 64, 3, 3] }, "model.invalid", /body\.10, received 47/],
      [{ ...compact, "body.7.weight": [63] }, "model.invalid", /"body\.7\.weight" of shape \[64\]/],
    ];
    for (const [shapes, code, pattern] of cases) await refuses(() => upscalerPart(headerOf(shapes)), code, pattern);
  });
});
