import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import {
  buildT2iAdapter,
  type T2iConfig,
  t2iAdapterPart,
  t2iCells,
  targetsOf,
} from "#src/host/checkpoint/unet/t2i-adapter.js";
import { listedNetwork } from "#src/host/checkpoint/weights/network.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { runBuilt } from "../../../../helpers/models/built.js";
import { headerOf, type Shapes, withKeys } from "../../../../helpers/models/full-size.js";
import { adapterFile, adapterLayers, adapterPicture } from "../../../../helpers/models/golden-adapters.js";
import { layerError } from "../../../../helpers/models/layers.js";

const { t2i, tensor } = adapterLayers();

describe("buildT2iAdapter", () => {
  const folder = temporaryFolder();
  for (const { file, hint, latent, unshuffle, channels, inputs, middle } of t2i)
    it(`${file} on a latent of ${latent.join(" x ")} as the reference`, async () => {
      const { config, weights } = t2iAdapterPart(await adapterFile(`controlnet/${file}`, folder()));
      assert.deepEqual([config.unshuffle, config.colours], [unshuffle, channels]);
      const cells = t2iCells(config, await adapterPicture(hint), latent);
      const [outputs] = await runBuilt(weights, (network) => buildT2iAdapter(network, config), { cells });
      for (const [level, target] of targetsOf(config).entries()) {
        const name = target === "middle_block" ? middle[0] : inputs[Number(target.split(".")[1])];
        const features = outputs![`level_${level}`]!;
        assert.ok(layerError(features.reshape(features.shape.slice(1)), tensor(name)) < 1e-5, name);
      }
    });
});

describe("t2iCells", () => {
  it("makes channels of the pixels of each square, row by row", () => {
    const hint = Tensor.zeros([1, 16, 8, 3]);
    for (let i = 0; i < hint.size; i++) hint.data[i] = i / hint.size;
    const config = { unshuffle: 8, colours: 3 } as T2iConfig;
    const { shape, data } = t2iCells(config, hint, [2, 1]);
    assert.deepEqual([...shape], [1, 192, 2, 1]);
    // green, row 3 and column 5 of the second square
    assert.equal(data[(64 + 3 * 8 + 5) * 2 + 1], hint.data[((8 + 3) * 8 + 5) * 3 + 1]);
    const grey = t2iCells({ ...config, colours: 1 }, hint, [2, 1]);
    assert.ok(Math.abs(grey.data[0]! - (hint.data[0]! + hint.data[1]! + hint.data[2]!) / 3) < 1e-7);
  });
});

const level = (channels: number, hasInput: boolean) => ({ channels, inner: channels, hasInput });
const FULL_SIZE: readonly T2iConfig[] = [
  {
    kind: "full",
    unshuffle: 8,
    colours: 3,
    first: 320,
    kernel: 1,
    levels: [level(320, false), level(640, true), level(1280, true), level(1280, false)],
  },
  {
    kind: "full",
    unshuffle: 16,
    colours: 1,
    first: 320,
    kernel: 3,
    levels: [level(320, false), level(640, true), level(1280, true), level(1280, false)],
  },
  {
    kind: "light",
    unshuffle: 8,
    colours: 3,
    first: 80,
    kernel: 3,
    levels: [320, 640, 1280, 1280].map((channels) => ({ channels, inner: channels / 4, hasInput: true })),
  },
];

function shapesOf(config: T2iConfig): Shapes {
  const network = listedNetwork();
  buildT2iAdapter(network, config);
  return Object.fromEntries(network.listed);
}

/** A key as diffusers has it. */
function diffusersKey(key: string, kind: T2iConfig["kind"]): string {
  const [, block, rest] = /^body\.(\d+)\.(.*)$/.exec(key) ?? [];
  if (block === undefined || rest === undefined) return `adapter.${key}`;
  if (kind === "light") return `adapter.body.${block}.${rest.replace(/^body/, "resnets")}`;
  const inLevel = rest.startsWith("in_conv") ? rest : `resnets.${Number(block) % 2}.${rest}`;
  return `adapter.body.${Math.floor(Number(block) / 2)}.${inLevel}`;
}

describe("t2iAdapterPart", () => {
  it("reads full-size adapters, also under diffusers' names", () => {
    for (const config of FULL_SIZE) {
      const shapes = shapesOf(config);
      assert.deepEqual(t2iAdapterPart(headerOf(shapes)).config, config);
      const renamed = withKeys(shapes, (key) => diffusersKey(key, config.kind));
      assert.deepEqual(t2iAdapterPart(headerOf(renamed)).config, config);
    }
  });

  it("refuses others, and damaged ones", async () => {
    const shapes = shapesOf(FULL_SIZE[0]!);
    const cases: [Shapes, string, RegExp][] = [
      [
        { ...shapes, "conv_in.weight": [320, 100, 3, 3] },
        "model.unsupported",
        /received one with 100 input channels\.$/,
      ],
      [
        { ...shapes, "body.2.down_opt.op.weight": [1] },
        "model.unsupported",
        /unknown weight "body\.2\.down_opt\.op\.weight"/,
      ],
      [
        { ...shapes, "body.3.block2.weight": [1] },
        "model.invalid",
        /"body\.3\.block2\.weight" of shape \[640, 640, 1, 1\]/,
      ],
    ];
    for (const [each, code, pattern] of cases) await refuses(() => t2iAdapterPart(headerOf(each)), code, pattern);
  });
});
