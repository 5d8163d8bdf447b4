import assert from "node:assert/strict";
import {
  type Clip,
  type Conditioning,
  createPreviewHost,
  encodePrompt,
  type Host,
  invokeNode,
  Tensor,
} from "latentkit";
import { encodePlain } from "#src/host/prompt/encode.js";
import { refuses } from "../../../helpers/errors.js";
import { fakeClip } from "../../../helpers/graph/fake-clip.js";
import { tellingClip } from "../../../helpers/graph/telling-clip.js";

describe("CLIPSetLastLayer", () => {
  const run = async (clip: unknown, layer: number, host?: Host) => {
    const { result } = await invokeNode("CLIPSetLastLayer", { clip, stop_at_clip_layer: layer }, host && { host });
    return result[0] as Clip;
  };

  it("asks the clip for the layer", async () => {
    const asked: number[] = [];
    const other = fakeClip("l") as Clip;
    const clip = { ...fakeClip("l"), atLayer: (layer: number) => asked.push(layer) && other };
    assert.equal(await run(clip, -2), other);
    assert.deepEqual(asked, [-2]);
  });

  it("takes a clip of one layer for its last, and names the host at any other", async () => {
    const clip = fakeClip("l");
    assert.equal(await run(clip, -1), clip);
    const host = { ...createPreviewHost(), name: "plain" };
    await refuses(
      run(clip, -2, host),
      "host.missing",
      /input "clip": the clip of host "plain" cannot stop at layer -2, only at its last\.$/,
    );
  });

  it("encodes other rows for each layer of the preview host, and the same pooled output", async () => {
    const { clip } = await createPreviewHost().loadCheckpoint("preview-sdxl.safetensors");
    assert.equal(await run(clip, -1), clip);
    const entries = await Promise.all([-1, -2, -3].map(async (layer) => encodePrompt(await run(clip, layer), "a fox")));
    const [last, second, third] = entries.map(([entry]) => entry!);
    assert.deepEqual(second![1], last![1]);
    assert.notDeepEqual(second![0], last![0]);
    assert.notDeepEqual(third![0], second![0]);
    assert.deepEqual((await encodePrompt(await run(await run(clip, -3), -2), "a fox"))[0], second);
    assert.deepEqual((await encodePrompt(await run(await run(clip, -3), -1), "a fox"))[0], last);
    await refuses(() => clip.atLayer!(-25), "value.out-of-range", /from -24 to -1, received -25/);
  });
});

describe("CLIPTextEncode", () => {
  const run = async (inputs: object) => (await invokeNode("CLIPTextEncode", { ...inputs })).result;

  it("weighs a prompt and takes BREAK and TIMESTEP as words", async () => {
    const clip = fakeClip("l");
    const [weighted] = (await run({ text: "a (b:1.5)", clip })) as [Conditioning];
    assert.deepEqual(weighted, await encodePrompt(clip, "a (b:1.5)"));
    const [plain] = (await run({ text: "a BREAK b TIMESTEP:0.5", clip })) as [Conditioning];
    assert.equal(plain.length, 1);
    assert.deepEqual(plain[0]![0].shape, [1, 77, 8]);
  });

  it("refuses bad inputs", async () => {
    await refuses(run({ text: "a" }), "input.missing", /clip/);
    await refuses(run({ text: "a", clip: { encoders: [] } }), "input.wrong-type", /clip/);
    await refuses(run({ text: ["a"], clip: fakeClip("l") }), "input.wrong-type", /text/);
  });
});

describe("CLIPTextEncodeSDXL", () => {
  const SIZES = { width: 1, height: 2, crop_w: 3, crop_h: 4, target_width: 5, target_height: 6 };
  const run = async (text_g: string, text_l: string, clip: object = fakeClip("xl")) =>
    (await invokeNode("CLIPTextEncodeSDXL", { clip, ...SIZES, text_g, text_l })).result[0] as Conditioning;

  it("encodes a text for each encoder and adds the sizes", async () => {
    const [[tokens, options]] = (await run("a fox", "a (hen:1.3)")) as [Conditioning[number]];
    const [[fox, foxOptions]] = (await encodePrompt(fakeClip("xl"), "a fox")) as [Conditioning[number]];
    const [[hen]] = (await encodePrompt(fakeClip("xl"), "a (hen:1.3)")) as [Conditioning[number]];
    assert.deepEqual(options, { ...SIZES, pooled_output: foxOptions.pooled_output });
    assert.deepEqual(tokens.shape, [1, 77, 16]);
    for (let at = 0; at < tokens.size; at++) assert.equal(tokens.data[at], (at % 16 < 8 ? hen : fox).data[at]);
  });

  it("fills the shorter text with empty chunks", async () => {
    const long = "word ".repeat(100);
    for (const [g, l] of [
      ["a", long],
      [long, "a"],
    ] as const) {
      const [[tokens]] = (await run(g, l)) as [Conditioning[number]];
      assert.deepEqual(tokens.shape, [1, 154, 16]);
      const [[short]] = (await encodePrompt(fakeClip("xl"), "a")) as [Conditioning[number]];
      const from = g === "a" ? 8 : 0;
      assert.equal(tokens.data[16 + from], short.data[16 + from]);
    }
  });

  it("refuses a clip of one encoder", async () => {
    await refuses(run("a", "b", fakeClip("l")), "value.invalid", /encoders g and l, as SDXL's, received "l"/);
  });
});

describe("CLIPTextEncodeSDXLRefiner", () => {
  it("adds score and size to the encoded text", async () => {
    const clip = { encoders: [fakeClip("xl").encoders[1]!] };
    const inputs = { clip, text: "a (fox:1.2)", ascore: 6.5, width: 640, height: 320 };
    const { result } = await invokeNode("CLIPTextEncodeSDXLRefiner", inputs);
    const [[tokens, options]] = result[0] as [Conditioning[number]];
    const [[plain, { pooled_output }]] = (await encodePlain(clip, "a (fox:1.2)")) as [Conditioning[number]];
    assert.deepEqual(tokens, plain);
    assert.deepEqual(options, { pooled_output, aesthetic_score: 6.5, width: 640, height: 320 });
  });
});

describe("CLIPTextEncodeFlux", () => {
  const inputs = { clip_l: "a fox", t5xxl: "a red fox", guidance: 2 };

  it("encodes a text for each encoder, with the guidance", async () => {
    const { clip, seen } = tellingClip();
    const { result } = await invokeNode("CLIPTextEncodeFlux", { clip, ...inputs });
    assert.deepEqual(seen, [{ texts: { clip_l: "a fox", t5xxl: "a red fox" }, pictures: [] }]);
    assert.deepEqual((result[0] as Conditioning)[0]![1], { told: 1, guidance: 2 });
  });

  it("says what the host lacks", async () => {
    const run = invokeNode("CLIPTextEncodeFlux", { clip: fakeClip("l"), ...inputs });
    await refuses(run, "host.missing", /host "preview" has no clip with the encoders clip_l, t5xxl\.$/);
  });
});

describe("CLIPTextEncodeHiDream", () => {
  const inputs = { clip_l: "a", clip_g: "b", t5xxl: "c", llama: "d" };

  it("encodes a text for each encoder", async () => {
    const { clip, seen } = tellingClip();
    const { result } = await invokeNode("CLIPTextEncodeHiDream", { clip, ...inputs });
    assert.deepEqual(seen, [{ texts: inputs, pictures: [] }]);
    assert.deepEqual((result[0] as Conditioning)[0]![1], { told: 1 });
  });

  it("says what the host lacks", async () => {
    const run = invokeNode("CLIPTextEncodeHiDream", { clip: fakeClip("xl"), ...inputs });
    await refuses(run, "host.missing", /has no clip with the encoders clip_l, clip_g, t5xxl, llama\.$/);
  });
});

describe("CLIPTextEncodeSD3", () => {
  const inputs = { clip_l: "a", clip_g: "b", t5xxl: "", empty_padding: "none" };

  it("leaves out an empty text", async () => {
    const { clip, seen } = tellingClip();
    const { result } = await invokeNode("CLIPTextEncodeSD3", { clip, ...inputs });
    assert.deepEqual(seen, [{ texts: { clip_l: "a", clip_g: "b" }, pictures: [] }]);
    assert.deepEqual((result[0] as Conditioning)[0]![1], { told: 1 });
  });

  it("encodes an empty text if that is wanted", async () => {
    const { clip, seen } = tellingClip();
    await invokeNode("CLIPTextEncodeSD3", { clip, ...inputs, empty_padding: "empty_prompt" });
    assert.deepEqual(seen, [{ texts: { clip_l: "a", clip_g: "b", t5xxl: "" }, pictures: [] }]);
  });

  it("says what the host lacks", async () => {
    const run = invokeNode("CLIPTextEncodeSD3", { clip: fakeClip("xl"), ...inputs });
    await refuses(run, "host.missing", /has no clip with the encoders clip_l, clip_g\.$/);
  });
});

describe("T5TokenizerOptions", () => {
  const run = async (clip: Clip) =>
    (await invokeNode("T5TokenizerOptions", { clip, min_padding: 1, min_length: 256 })).result[0];

  it("hands the options to a clip with such encoders; another one stays as it is", async () => {
    const other = fakeClip("l");
    const seen: object[] = [];
    const withT5Options = (options: object) => {
      seen.push(options);
      return other;
    };
    assert.equal(await run({ ...fakeClip("l"), withT5Options }), other);
    assert.deepEqual(seen, [{ min_padding: 1, min_length: 256 }]);
    assert.equal(await run(other), other);
  });
});

describe("TextEncodeQwenImageEdit", () => {
  const inputs = { prompt: "make it red" };

  it("encodes a prompt without a picture", async () => {
    const { clip, seen } = tellingClip();
    const { result } = await invokeNode("TextEncodeQwenImageEdit", { clip, ...inputs });
    assert.deepEqual(seen, [{ texts: { qwen25_7b: "make it red" }, pictures: [] }]);
    assert.deepEqual((result[0] as Conditioning)[0]![1], { told: 1 });
  });

  it("shows the clip a picture of about a megapixel, whose latent is a reference", async () => {
    const { clip, seen } = tellingClip();
    const vae = { encode: async (image: Tensor) => image, decode: async (latent: Tensor) => latent };
    const image = Tensor.full([1, 30, 60, 4], 0.5);
    const { result } = await invokeNode("TextEncodeQwenImageEdit", { clip, ...inputs, vae, image });
    const [{ pictures }] = seen as unknown as [{ pictures: Tensor[] }];
    assert.deepEqual(pictures[0]!.shape, [1, 724, 1448, 3]);
    const [reference] = (result[0] as Conditioning)[0]![1].reference_latents as [Tensor];
    assert.deepEqual(reference.shape, [1, 724, 1448, 3]);
    assert.equal(reference.data[0], 0.5);
  });

  it("says what the host lacks", async () => {
    const image = Tensor.full([1, 8, 8, 3], 0.5);
    const run = invokeNode("TextEncodeQwenImageEdit", { clip: fakeClip("l"), ...inputs, image });
    await refuses(run, "host.missing", /has no clip with the encoder qwen25_7b\.$/);
  });
});

describe("TextEncodeQwenImageEditPlus", () => {
  const inputs = { prompt: "in one picture" };

  it("encodes a prompt without pictures", async () => {
    const { clip, seen } = tellingClip();
    const { result } = await invokeNode("TextEncodeQwenImageEditPlus", { clip, ...inputs });
    assert.deepEqual(seen, [{ texts: { qwen25_7b: "in one picture" }, pictures: [] }]);
    assert.deepEqual((result[0] as Conditioning)[0]![1], { told: 1 });
  });

  it("shows the clip small pictures, and refers to large ones with sides that are multiples of 8", async () => {
    const { clip, seen } = tellingClip();
    const vae = { encode: async (image: Tensor) => image, decode: async (latent: Tensor) => latent };
    const [image1, image3] = [Tensor.full([1, 30, 60, 3], 0.5), Tensor.full([1, 50, 50, 3], 0.25)];
    const { result } = await invokeNode("TextEncodeQwenImageEditPlus", { clip, ...inputs, vae, image1, image3 });
    const shapes = (tensors: readonly Tensor[]) => tensors.map(({ shape }) => shape);
    const [{ pictures }] = seen as unknown as [{ pictures: Tensor[] }];
    assert.deepEqual(shapes(pictures), [
      [1, 272, 543, 3],
      [1, 384, 384, 3],
    ]);
    const references = (result[0] as Conditioning)[0]![1].reference_latents as Tensor[];
    assert.deepEqual(shapes(references), [
      [1, 728, 1448, 3],
      [1, 1024, 1024, 3],
    ]);
  });

  it("says what the host lacks", async () => {
    const run = invokeNode("TextEncodeQwenImageEditPlus", { clip: fakeClip("l"), ...inputs });
    await refuses(run, "host.missing", /has no clip with the encoder qwen25_7b\.$/);
  });
});
