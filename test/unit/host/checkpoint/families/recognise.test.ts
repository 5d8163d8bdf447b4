import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { CheckpointSampling } from "#src/host/checkpoint/diffusion/sampling.js";
import { recogniseCheckpoint, recogniseModelPatch } from "#src/host/checkpoint/families/recognise.js";
import type { UnetConfig } from "#src/host/checkpoint/unet/build.js";
import { levelsOfLdm, renaming, unetModules } from "#src/host/checkpoint/weights/diffusers-names.js";
import { refuses } from "../../../../helpers/errors.js";
import { root, temporaryFolder } from "../../../../helpers/folders.js";
import { fullSizeShapes, headerOf, type Shapes, withKeys } from "../../../../helpers/models/full-size.js";
import { fullSizeFlux } from "../../../../helpers/models/golden-flux.js";
import { unpackFolders } from "../../../../helpers/models/golden-graphs.js";
import {
  CHECKPOINTS,
  type CheckpointName,
  recognised,
  recogniseStableDiffusion,
} from "../../../../helpers/models/recognised.js";
import { weightFile } from "../../../../helpers/models/weight-file.js";
import { seededInts } from "../../../../helpers/seeded.js";

const UNET = "model.diffusion_model.";

/** Channels and depth of each block; "d" halves the sides, "u" doubles them. */
const blocks = (list: readonly { kind?: string; channels: number; depth: number; upsample?: boolean }[]): string =>
  list
    .map(
      ({ kind, channels, depth, upsample }) =>
        `${kind === "down" ? "d" : ""}${channels}x${depth}${upsample ? "u" : ""}`,
    )
    .join(" ");

/** Blocks of a network of four levels with transformers of depth 1 in the first three. */
const FOUR_LEVELS = (m: number, [a, b, c]: readonly [number, number, number]): Pick<Described, "input" | "output"> => ({
  input: `${m}x0 ${m}x1 ${m}x1 d${m}x0 ${a}x1 ${a}x1 d${a}x0 ${b}x1 ${b}x1 d${b}x0 ${c}x0 ${c}x0`,
  output: `${c}x0 ${c}x0 ${c}x0u ${b}x1 ${b}x1 ${b}x1u ${a}x1 ${a}x1 ${a}x1u ${m}x1 ${m}x1 ${m}x1`,
});

interface Described {
  readonly family: string;
  readonly input: string;
  readonly output: string;
  readonly middle: string;
  /** Channels in, context, label. */
  readonly sides: readonly (number | undefined)[];
  readonly heads: UnetConfig["heads"];
  readonly linear: boolean;
  /** Name, layout, channels and layers of each. */
  readonly encoders: readonly string[];
  readonly vae: readonly number[];
  readonly ignored: number;
  readonly sampling?: Partial<CheckpointSampling>;
}

const SD1 = { family: "sd1", heads: { count: 8 }, linear: false, ignored: 1 } as const;
const SD2 = { family: "sd2", heads: { size: 64 }, linear: true, ignored: 6 } as const;

/** From the table of the golden models. */
const EXPECTED: Readonly<Record<CheckpointName, Described>> = {
  sd1: {
    ...SD1,
    ...FOUR_LEVELS(32, [64, 128, 128]),
    middle: "128x1",
    sides: [4, 64, undefined],
    encoders: ["l hf 64 12"],
    vae: [1, 2, 4, 4],
  },
  sd1_fp32: {
    ...SD1,
    ...FOUR_LEVELS(32, [64, 64, 64]),
    middle: "64x1",
    sides: [4, 64, undefined],
    encoders: ["l hf 64 5"],
    vae: [1, 1, 2, 2],
    ignored: 11,
  },
  sd1_inpaint: {
    ...SD1,
    ...FOUR_LEVELS(32, [64, 64, 64]),
    middle: "64x1",
    sides: [9, 64, undefined],
    encoders: ["l hf 64 4"],
    vae: [1, 1, 2, 2],
  },
  sd2_v: {
    ...SD2,
    ...FOUR_LEVELS(64, [128, 128, 128]),
    middle: "128x1",
    sides: [4, 128, undefined],
    encoders: ["h openclip 128 5"],
    vae: [1, 1, 2, 2],
    sampling: { prediction: "v" },
  },
  sd2_eps_inpaint: {
    ...SD2,
    ...FOUR_LEVELS(64, [64, 64, 128]),
    middle: "128x1",
    sides: [9, 128, undefined],
    encoders: ["h openclip 128 4"],
    vae: [1, 1, 2, 2],
  },
  sdxl: {
    family: "sdxl",
    input: "32x0 32x0 32x0 d32x0 64x2 64x2 d64x0 128x4 128x4",
    output: "128x4 128x4 128x4u 64x2 64x2 64x2u 32x0 32x0 32x0",
    middle: "128x4",
    sides: [4, 192, 1664],
    heads: { size: 64 },
    linear: true,
    encoders: ["l hf 64 6", "g openclip 128 5"],
    vae: [1, 1, 2, 2],
    ignored: 2,
    sampling: { latentFormat: "SDXL" },
  },
  sd1_fp8: {
    ...SD1,
    ...FOUR_LEVELS(32, [32, 64, 64]),
    middle: "64x1",
    sides: [4, 64, undefined],
    encoders: ["l hf 64 3"],
    vae: [1, 1, 1, 1],
  },
};

const unread = (): Promise<Float32Array> => Promise.reject(new Error("no values are needed"));
/** A bias with a standard deviation of 0.1. */
const wide = async (): Promise<Float32Array> => Float32Array.from({ length: 320 }, (_, i) => (i % 2 ? 0.1 : -0.1));
const narrow = async (): Promise<Float32Array> => Float32Array.from({ length: 320 }, (_, i) => (i % 2 ? 0.08 : -0.08));

const SD1_SHAPES = fullSizeShapes().sd1;
const without = (shapes: Shapes, part: string): Shapes =>
  withKeys(shapes, (key) => (key.includes(part) ? undefined : key));

describe("recogniseCheckpoint", () => {
  const folder = temporaryFolder();

  it("knows families whose folders have tests each", () => {
    const source = readFileSync(join(root, "src/host/checkpoint/families/recognise.ts"), "utf8");
    const [, names = ""] = /^const FAMILIES.* = \[(.+)\];$/m.exec(source) ?? [];
    for (const name of names.split(", ")) {
      const [, own = name] = new RegExp(`import \\{ ${name} \\} from "\\.\\./([^/]+)/`).exec(source) ?? [];
      const tests = readdirSync(join(root, "test/unit/host/checkpoint", own)).filter((file) =>
        file.endsWith(".test.ts"),
      );
      assert.notDeepEqual(tests, [], own);
    }
  });

  for (const name of CHECKPOINTS)
    it(`reads every size of ${name}`, async () => {
      const { family, sampling, unet, textEncoders, vae, inpaint, ignored } = await recognised(name, folder());
      const { inChannels, outChannels, modelChannels, contextDim, labelDim, heads, linearProjection } = unet.config;
      const expected = EXPECTED[name];
      const described: Described = {
        family,
        input: blocks(unet.config.input),
        output: blocks(unet.config.output),
        middle: blocks([unet.config.middle!]),
        sides: [inChannels, contextDim, labelDim],
        heads,
        linear: linearProjection,
        encoders: textEncoders.map(({ config }) => `${config.name} ${config.layout} ${config.hidden} ${config.layers}`),
        vae: vae!.config.multipliers,
        ignored,
        ...(expected.sampling === undefined ? {} : { sampling: expected.sampling }),
      };
      assert.deepEqual(described, expected);
      assert.equal(outChannels, 4);
      assert.equal(modelChannels, unet.config.input[0]!.channels);
      assert.equal(inpaint, inChannels === 9);
      const usual = { schedule: "discrete", prediction: "eps", zeroTerminalSnr: false, latentFormat: "SD15" };
      assert.deepEqual(sampling, { ...usual, ...expected.sampling });
      assert.deepEqual(
        { ...vae!.config, multipliers: [] },
        {
          family: "sd",
          channels: 32,
          multipliers: [],
          blocks: 2,
          encoderChannels: 32,
          latentChannels: 4,
          normalised: false,
          quantised: true,
          attention: 4,
          hasEncoder: true,
        },
      );
    });

  it("reads every size of the full-size files", async () => {
    const parameters = (weights: ReadonlyMap<string, { shape: readonly number[] }>): number =>
      [...weights.values()].reduce((sum, { shape }) => sum + shape.reduce((product, side) => product * side, 1), 0);
    const expected = {
      sd1: ["sd1", 686, 859_520_964, [12], 4],
      sd1_inpaint: ["sd1", 686, 859_535_364, [12], 9],
      sd2: ["sd2", 686, 865_910_724, [24], 4],
      sdxl: ["sdxl", 1680, 2_567_463_684, [12, 32], 4],
      sdxl_refiner: ["sdxl-refiner", 1220, 2_259_526_660, [32], 4],
    };
    for (const [name, shapes] of Object.entries(fullSizeShapes())) {
      const { family, unet, textEncoders, vae } = await recogniseStableDiffusion(headerOf(shapes), narrow);
      const layers = textEncoders.map(({ config }) => config.layers);
      const { size } = unet.weights;
      assert.deepEqual(
        [family, size, parameters(unet.weights), layers, unet.config.inChannels],
        expected[name as keyof typeof expected],
      );
      assert.equal(vae!.weights.size, 248);
      assert.equal(parameters(vae!.weights), 83_653_863);
    }
    const { textEncoders } = await recogniseStableDiffusion(headerOf(SD1_SHAPES), unread);
    assert.equal(textEncoders[0]!.weights.size, 196);
    assert.equal(parameters(textEncoders[0]!.weights), 123_060_480);
  });

  it("recognises UNets alone, under each prefix and in diffusers' names", async () => {
    for (const [name, shapes] of Object.entries(fullSizeShapes())) {
      const whole = await recogniseStableDiffusion(headerOf(shapes), narrow);
      for (const prefix of ["", "model.", "diffusion_model.", UNET]) {
        const alone = withKeys(shapes, (key) => (key.startsWith(UNET) ? prefix + key.slice(UNET.length) : undefined));
        const { family, unet, textEncoders, vae, ignored } = await recogniseStableDiffusion(headerOf(alone), narrow);
        assert.equal(family, whole.family, `${name}, ${prefix}`);
        assert.deepEqual(unet.config, whole.unet.config);
        assert.deepEqual([textEncoders, vae, ignored], [[], undefined, 0]);
      }
      const own = withKeys(shapes, (key) => (key.startsWith(UNET) ? key.slice(UNET.length) : undefined));
      const toDiffusers = renaming(unetModules(levelsOfLdm(Object.keys(own))), 0);
      const diffusers = withKeys(own, (key) => toDiffusers(key) ?? key);
      assert.ok("down_blocks.0.resnets.0.conv1.weight" in diffusers);
      const { unet } = await recogniseStableDiffusion(headerOf(diffusers), narrow);
      assert.deepEqual(unet.config, whole.unet.config);
      const key = "up_blocks.0.resnets.1.norm2.bias";
      const damaged = recogniseStableDiffusion(headerOf({ ...diffusers, [key]: [7] }), narrow);
      await refuses(damaged, "model.invalid", new RegExp(`"${key.replaceAll(".", "\\.")}" of shape`));
    }
  });

  it("takes files without text encoder or VAE", async () => {
    const { textEncoders, vae } = await recogniseStableDiffusion(
      headerOf(without(without(SD1_SHAPES, "first_stage_model."), "cond_stage_model.")),
      unread,
    );
    assert.deepEqual([textEncoders, vae], [[], undefined]);
  });

  it("takes text encoders under the keys of old files, and knows them by one name if a file has both", async () => {
    const old = withKeys(SD1_SHAPES, (key) => key.replace(".text_model.", "."));
    for (const shapes of [old, { ...old, ...SD1_SHAPES }]) {
      const { textEncoders } = await recogniseStableDiffusion(headerOf(shapes), unread);
      assert.deepEqual(
        textEncoders.map(({ config, weights }) => [config.name, weights.size]),
        [["l", 196]],
      );
    }
  });

  it("tells v from eps in SD 2 by the deviation of one bias, and not with a mask", async () => {
    const { sd2 } = fullSizeShapes();
    const predictionOf = async (shapes: Shapes, read: () => Promise<Float32Array>) =>
      (await recogniseStableDiffusion(headerOf(shapes), read)).sampling.prediction;
    assert.equal(await predictionOf(sd2, wide), "v");
    assert.equal(await predictionOf(sd2, narrow), "eps");
    const first = `${UNET}input_blocks.0.0.weight`;
    assert.equal(await predictionOf({ ...sd2, [first]: [320, 9, 3, 3] }, unread), "eps");
  });

  it("reads the schedule of SDXL from its marks", async () => {
    const { sdxl } = fullSizeShapes();
    const read = async ({ shape }: { shape: readonly number[] }) =>
      new Float32Array(shape.length === 1 ? [120] : [1, 2, 3, 4]);
    const samplingOf = async (marks: Shapes) =>
      (await recogniseStableDiffusion(headerOf({ ...sdxl, ...marks }), read)).sampling;
    const discrete = { schedule: "discrete", latentFormat: "SDXL", zeroTerminalSnr: false };
    assert.deepEqual(await samplingOf({ ztsnr: [0] }), { ...discrete, prediction: "eps" });
    assert.deepEqual(await samplingOf({ v_pred: [] }), { ...discrete, prediction: "v" });
    assert.deepEqual(await samplingOf({ v_pred: [0], ztsnr: [0] }), {
      ...discrete,
      prediction: "v",
      zeroTerminalSnr: true,
    });
    assert.deepEqual(await samplingOf({ "edm_vpred.sigma_max": [1] }), {
      ...discrete,
      schedule: "edm",
      prediction: "edm-v",
      sigmaMin: 0.002,
      sigmaMax: 120,
    });
    assert.deepEqual(await samplingOf({ edm_mean: [1, 4, 1, 1], edm_std: [1, 4, 1, 1] }), {
      schedule: "edm",
      prediction: "edm",
      zeroTerminalSnr: false,
      sigmaMin: 0.002,
      sigmaMax: 80,
      latentFormat: "SDXL_Playground_2_5",
    });
    await refuses(samplingOf({ "edm_vpred.sigma_max": [2] }), "model.invalid", /edm_vpred\.sigma_max.*2 of them/);
    const both = samplingOf({ "edm_vpred.sigma_max": [1], "edm_vpred.sigma_min": [1] });
    await refuses(both, "model.invalid", /sigma_max above/);
  });

  it("refuses other kinds of UNets by name", async () => {
    const { sd2, sdxl } = fullSizeShapes();
    const first = `${UNET}input_blocks.0.0.weight`;
    const cases: [Shapes, RegExp][] = [
      [{ ...SD1_SHAPES, [first]: [320, 8, 3, 3] }, /InstructPix2Pix/],
      [{ ...sd2, [first]: [320, 5, 3, 3] }, /depth map/],
      [{ ...sd2, [first]: [320, 7, 3, 3] }, /upscales/],
      [{ ...SD1_SHAPES, [first]: [320, 6, 3, 3] }, /with 6/],
      [{ ...sd2, [`${UNET}input_blocks.1.1.time_stack.0.norm1.weight`]: [320] }, /Stable Video Diffusion/],
      [{ ...sdxl, [`${UNET}encoder_hid_proj.weight`]: [2048, 4096] }, /Kolors/],
      [{ ...sd2, "noise_augmentor.data_mean": [1, 1024] }, /unCLIP/],
      [
        {
          ...sd2,
          [`${UNET}label_emb.0.0.weight`]: [1280, 2048],
          [`${UNET}label_emb.0.0.bias`]: [1280],
          [`${UNET}label_emb.0.2.weight`]: [1280, 1280],
          [`${UNET}label_emb.0.2.bias`]: [1280],
        },
        /unCLIP/,
      ],
      [
        { ...SD1_SHAPES, [`${UNET}input_blocks.1.2.norm.weight`]: [320] },
        /unknown weight.*input_blocks\.1\.2\.norm\.weight/,
      ],
    ];
    for (const [shapes, pattern] of cases)
      await refuses(
        recogniseStableDiffusion(headerOf(shapes), narrow),
        "model.unsupported",
        /^Model "model\.safetensors": /,
        pattern,
      );
  });

  it("refuses damaged files with the key", async () => {
    const { sdxl } = fullSizeShapes();
    const changed = (key: string, shape?: readonly number[]): Shapes =>
      shape === undefined ? without(SD1_SHAPES, key) : { ...SD1_SHAPES, [key]: shape };
    const encoder = "cond_stage_model.transformer.text_model.";
    const cases: [Shapes, string][] = [
      [changed(`${UNET}middle_block.1.norm.bias`), "middle_block.1.norm.bias"],
      [changed(`${UNET}input_blocks.4.`), "input_blocks.4.0.out_layers.3.weight"],
      [changed(`${UNET}input_blocks.0.0.weight`), "input_blocks.0.0.weight"],
      [changed(`${UNET}out.2.weight`), "out.2.weight"],
      [changed(`${UNET}input_blocks.7.0.in_layers.2.weight`, [1280, 640, 3, 2]), "input_blocks.7.0.in_layers.2.weight"],
      [changed(`${UNET}time_embed.0.weight`, [1280, 321]), "time_embed.0.weight"],
      [changed(`${UNET}input_blocks.1.1.transformer_blocks.0.attn2.to_k.weight`), "attn2.to_k.weight"],
      [
        changed(`${UNET}input_blocks.5.1.transformer_blocks.0.attn2.to_k.weight`, [640, 769]),
        "input_blocks.5.1.transformer_blocks.0.attn2.to_k.weight",
      ],
      [changed(`${UNET}output_blocks.11.`), "11"],
      [changed(`${UNET}output_blocks.2.1.conv.`), "output_blocks.3"],
      [changed(`${encoder}encoder.layers.3.mlp.fc2.weight`), `${encoder}encoder.layers.3.mlp.fc2.weight`],
      [changed(`${encoder}embeddings.token_embedding.weight`), `${encoder}embeddings.token_embedding.weight`],
      [changed(`${encoder}encoder.layers.5.`), `${encoder}encoder.layers.5.`],
      [changed("first_stage_model.decoder.up.1.upsample.conv.bias"), "decoder.up.1.upsample.conv.bias"],
      [changed("first_stage_model.decoder.conv_in.weight"), "first_stage_model.decoder.conv_in.weight"],
      [changed("first_stage_model.quant_conv.weight", [8, 8]), "first_stage_model.quant_conv.weight"],
      [without(sdxl, "conditioner.embedders.0."), "2048"],
      [without(sdxl, "text_projection"), "text_projection"],
    ];
    for (const [shapes, key] of cases) {
      const error = await refuses(recogniseStableDiffusion(headerOf(shapes), unread), "model.invalid");
      assert.ok(error.message.replaceAll('"', "").includes(key), `${error.message} lacks ${key}`);
    }
  });

  it("refuses weights that are not floats", async () => {
    const file = headerOf(SD1_SHAPES);
    const key = `${UNET}input_blocks.1.0.in_layers.0.weight`;
    const weights = new Map(file.weights).set(key, { ...file.weights.get(key)!, dtype: "I64" });
    await refuses(recogniseStableDiffusion({ ...file, weights }, unread), "model.invalid", /in_layers\.0\.weight.*I64/);
  });

  it("stays bounded with absurd numbers and shapes", async () => {
    const cases: Shapes[] = [
      { [`${UNET}input_blocks.9999.0.in_layers.0.weight`]: [1] },
      { [`${UNET}input_blocks.1.1.transformer_blocks.9000.norm1.weight`]: [1] },
      { [`${UNET}output_blocks.00.0.weight`]: [1] },
      { [`${UNET}input_blocks.99999999999999999999.0.weight`]: [1] },
      { [`${UNET}input_blocks.0.0.weight`]: [2 ** 40, 4, 0, 0] },
      { [`${UNET}input_blocks.0.0.weight`]: [] },
      { [`${UNET}input_blocks.1.0.out_layers.3.weight`]: [2 ** 45, 0, 3, 3] },
      { "cond_stage_model.transformer.text_model.encoder.layers.9999.mlp.fc1.weight": [1] },
      { "cond_stage_model.transformer.text_model.embeddings.token_embedding.weight": [2 ** 40, 0] },
      { "first_stage_model.decoder.up.999.block.0.conv1.weight": [0] },
      { "first_stage_model.decoder.conv_out.weight": [3, 0, 3, 3] },
    ];
    for (const shapes of cases) {
      const error = await refuses(recogniseStableDiffusion(headerOf({ ...SD1_SHAPES, ...shapes }), unread), /^model\./);
      assert.ok(error.message.length < 500);
    }
    const dots = `${UNET}${".".repeat(2 ** 20)}`;
    const { ignored } = await recogniseStableDiffusion(headerOf({ ...SD1_SHAPES, [dots]: [1] }), unread);
    assert.equal(ignored, 2);
  });

  it("recognises or refuses whatever is removed, renamed or reshaped @long", async () => {
    const int = seededInts(16);
    const families = Object.values(fullSizeShapes());
    for (let round = 0; round < 150; round++) {
      const entries = Object.entries(families[round % families.length]!);
      for (let change = int(3); change >= 0; change--) {
        const at = int(entries.length);
        const [key, shape] = entries[at]!;
        const kind = int(4);
        if (kind === 0) entries.splice(at, 1);
        else if (kind === 1) entries[at] = [key.replace(/\d+/, (number) => `${Number(number) + 1}`), shape];
        else if (kind === 2) entries[at] = [key, shape.map((side) => side * int(3))];
        else entries[at] = [key, shape.slice(int(2))];
      }
      try {
        await recogniseStableDiffusion(headerOf(Object.fromEntries(entries)), narrow);
      } catch (error) {
        const { message } = await refuses(Promise.reject(error), /^model\./);
        assert.match(message, /^Model "model\.safetensors": expected [^\n]+, received [^\n]+\.$/);
      }
    }
  });
});

describe("recogniseCheckpoint, of Flux.1", () => {
  const { flux1_dev, flux1_schnell, flux1_fill, t5xxl, ae } = fullSizeFlux();
  const clipL = withKeys(fullSizeShapes().sd1, (key) =>
    key.startsWith("cond_stage_model.transformer.") ? key.slice("cond_stage_model.transformer.".length) : undefined,
  );
  const under = (prefix: string, shapes: Shapes): Shapes => withKeys(shapes, (key) => prefix + key);
  const recognise = (shapes: Shapes) =>
    recogniseCheckpoint(headerOf(shapes), () => Promise.reject(new Error("no values are needed")));

  it("finds all parts of a whole checkpoint, and of a transformer alone none but it", async () => {
    const whole = await recognise({
      ...under("model.diffusion_model.", flux1_schnell),
      ...under("text_encoders.clip_l.transformer.", clipL),
      ...under("text_encoders.t5xxl.transformer.", t5xxl),
      ...under("vae.", ae),
    });
    assert.deepEqual([whole.family, whole.network.what, whole.inpaint], ["flux-schnell", "Flux transformer", false]);
    assert.deepEqual(
      whole.textEncoders.map(({ kind }) => kind),
      ["clip", "t5"],
    );
    assert.deepEqual([whole.vae?.config.latentChannels, whole.sampling.schedule], [16, "flux-schnell"]);
    const alone = await recognise(flux1_dev);
    assert.deepEqual([alone.family, alone.textEncoders, alone.vae, alone.ignored], ["flux", [], undefined, 0]);
    assert.equal((await recognise(flux1_fill)).inpaint, true);
  });

  it("takes off what training programs leave before all keys", async () => {
    assert.equal((await recognise(under("module.", flux1_dev))).family, "flux");
  });
});

describe("recogniseModelPatch", () => {
  const folder = temporaryFolder();

  it("knows the families of control nets, also under a prefix of all keys", async () => {
    unpackFolders(join(root, "test/golden/models-z-qwen"), ["model_patches"], folder());
    for (const [name, family] of [
      ["z_fun_controlnet_v1_tiny", "z-image"],
      ["q_diffsynth_tiny", "qwen-image"],
    ] as const) {
      const file = await weightFile(join(folder(), `model_patches/${name}.safetensors`));
      assert.equal(recogniseModelPatch(file).family, family);
      const wrapped = new Map([...file.weights].map(([key, weight]) => [`net.${key}`, weight]));
      assert.equal(recogniseModelPatch({ ...file, weights: wrapped }).family, family);
    }
  });

  it("refuses other files by name", () =>
    refuses(
      () => recogniseModelPatch(headerOf({ "a.lora_up.weight": [1, 1] })),
      "model.unsupported",
      /a control net of Z-Image \(Fun\) or Qwen-Image \(DiffSynth\), received a LoRA/,
    ));
});
