import assert from "node:assert/strict";
import { createPreviewHost, encodePrompt, LatentkitError, modelSampling, randn, Tensor } from "latentkit";
import { loadNative } from "#src/native/load.js";
import { LATENT_RGB } from "#src/tensor/sampling/latent-format.js";
import { rejectsAs } from "../../../helpers/errors.js";
import { goldenJson } from "../../../helpers/tensor/golden.js";

const host = createPreviewHost();
const load = (family: string) => host.loadCheckpoint(`preview-${family}.safetensors`);
const FAMILIES = [
  "sd15",
  "sdxl",
  "sd21-v",
  "sd21-v-zsnr",
  "hunyuan-dit",
  "svd",
  "sd3",
  "auraflow",
  "flux",
  "flux-schnell",
] as const;

/** A picture of slow waves [B, H, W, 3], made without Math.sin so that it is the same everywhere. */
function picture(batch: number, height: number, width: number): Tensor {
  const image = Tensor.zeros([batch, height, width, 3]);
  const wave = (t: number) => 0.2 + 0.6 * Math.abs((((t % 1) + 1) % 1) * 2 - 1);
  for (let i = 0; i < image.size; i++) {
    const pixel = Math.floor(i / 3);
    image.data[i] = wave((pixel % width) / 64 + (i % 3) / 3) * 0.5 + wave(Math.floor(pixel / width) / 48) * 0.5;
  }
  return image;
}

function blockMeans(image: Tensor): Tensor {
  const [batch = 0, height = 0, width = 0] = image.shape;
  const out = Tensor.zeros([batch, height / 8, width / 8, 3]);
  for (let i = 0; i < image.size; i++) {
    const pixel = Math.floor(i / 3);
    const [x, y, b] = [pixel % width, Math.floor(pixel / width) % height, Math.floor(pixel / width / height)];
    const cell = (b * (height / 8) + Math.floor(y / 8)) * (width / 8) + Math.floor(x / 8);
    out.data[cell * 3 + (i % 3)]! += image.data[i]! / 64;
  }
  return out;
}

describe("the preview host", () => {
  it("offers a checkpoint for each family with published factors", async () => {
    assert.deepEqual(
      host.checkpoints(),
      FAMILIES.map((family) => `preview-${family}.safetensors`),
    );
    assert.equal(host.preview, true);
    for (const family of FAMILIES) {
      const { model, clip } = await load(family);
      assert.deepEqual(model.sampling.latentFormat, modelSampling(family).latentFormat);
      assert.equal(clip.encoders.length, family === "sdxl" || family === "sd3" ? 2 : 1);
    }
  });

  it("returns the same objects for a checkpoint loaded twice", async () =>
    assert.equal(await load("sd15"), await load("sd15")));

  it("maps names of old graphs", async () => {
    const own = createPreviewHost({ checkpoints: { "dreamshaper_8.safetensors": "sd15" } });
    assert.ok(own.checkpoints().includes("dreamshaper_8.safetensors"));
    assert.equal((await own.loadCheckpoint("dreamshaper_8.safetensors")).model.sampling.name, "sd15");
  });

  it("refuses families and checkpoints it does not have", async () => {
    assert.throws(() => createPreviewHost({ checkpoints: { x: "sd16" } }), /received "sd16". Did you mean sd15\?/);
    assert.throws(() => createPreviewHost({ checkpoints: { x: "cascade-b" } }), LatentkitError);
    await assert.rejects(load("sd51"), /expected one of preview-sd15/);
    await assert.rejects(host.loadCheckpoint("__proto__"), LatentkitError);
  });

  it("has the published latent-to-RGB factors", () => {
    interface Published {
      latent_rgb_factors: number[][];
      latent_rgb_factors_bias: number[] | null;
      scale_factor: number;
      shift_factor: number | null;
    }
    const { formats } = goldenJson<{ formats: Record<string, Published> }>("latent_preview");
    assert.deepEqual(
      LATENT_RGB.map(({ format }) => format.name),
      Object.keys(formats),
    );
    for (const { format, factors, bias } of LATENT_RGB) {
      const published = formats[format.name]!;
      assert.deepEqual(factors, published.latent_rgb_factors);
      assert.deepEqual(bias, published.latent_rgb_factors_bias ?? [0, 0, 0]);
      assert.equal(format.scaleFactor, published.scale_factor);
      assert.equal(format.shiftFactor, published.shift_factor ?? 0);
    }
  });
});

describe("the preview vae", () => {
  for (const family of ["sd15", "sdxl", "sd3", "flux"]) {
    it(`of ${family} decodes what it encoded as the blurred picture`, async () => {
      const { vae, model } = await load(family);
      const image = picture(2, 64, 96);
      const latent = await vae.encode(image);
      assert.deepEqual(latent.shape, [2, model.sampling.latentFormat.channels, 8, 12]);
      const back = await vae.decode(latent);
      assert.deepEqual(back.shape, image.shape);
      const [means, backMeans] = [blockMeans(image), blockMeans(back)];
      for (const [i, mean] of means.data.entries()) assert.ok(Math.abs(backMeans.data[i]! - mean) < 0.06);
      for (const [i, value] of back.data.entries()) assert.ok(Math.abs(value - image.data[i]!) < 0.15);
    });

    it(`of ${family} keeps one colour exactly`, async () => {
      const { vae } = await load(family);
      for (const level of [0, 0.25, 0.5, 1]) {
        const back = await vae.decode(await vae.encode(Tensor.full([1, 16, 16, 3], level)));
        for (const value of back.data) assert.ok(Math.abs(value - level) < 1e-5, `${value}, not ${level}`);
      }
    });
  }

  it("crops the middle to multiples of 8", async () => {
    const { vae } = await load("sd15");
    const image = Tensor.full([1, 20, 11, 3], 0.75);
    // a frame of the wrong colour: two rows at the top and bottom, one column left, two right
    for (let pixel = 0; pixel < 220; pixel++) {
      const [x, y] = [pixel % 11, Math.floor(pixel / 11)];
      if (y < 2 || y >= 18 || x < 1 || x >= 9) image.data.fill(0, pixel * 3, pixel * 3 + 3);
    }
    const back = await vae.decode(await vae.encode(image));
    assert.deepEqual(back.shape, [1, 16, 8, 3]);
    for (const value of back.data) assert.ok(Math.abs(value - 0.75) < 1e-5);
  });

  it("stays in 0 … 1 for wild latents", async () => {
    const { vae } = await load("sd15");
    const latent = Tensor.from([Number.NaN, 1e30, -1e30, 5], [1, 4, 1, 1]);
    for (const value of (await vae.decode(latent)).data) assert.ok(value >= 0 && value <= 1);
  });

  it("refuses other shapes, and pictures too large before they are made", async () => {
    const { vae } = await load("sd15");
    await assert.rejects(vae.encode(Tensor.zeros([1, 16, 16, 4])), /expected an image \[B, H, W, 3\]/);
    await assert.rejects(vae.encode(Tensor.zeros([1, 7, 16, 3])), /at least 8 x 8/);
    await assert.rejects(vae.decode(Tensor.zeros([1, 16, 2, 2])), /\[B, 4, h, w\] of the SD15 format/);
    await assert.rejects(vae.decode(Tensor.zeros([1, 4, 0, 2])), LatentkitError);
    const large = vae.decode(Tensor.zeros([1, 4, 4096, 4096]));
    await assert.rejects(large, (error) => error instanceof LatentkitError && error.code === "tensor.too-large");
  });
});

describe("the preview clip", () => {
  it("hashes words to ids below the start token, the same for any case", async () => {
    const { clip } = await load("sd15");
    const [l] = clip.encoders;
    const ids = l!.tokenize("A Fox, in 東京! extraordinarily");
    assert.deepEqual(ids, l!.tokenize("a fox , in 東京 ! EXTRAORDINARILY"));
    assert.equal(ids.length, 9);
    assert.ok(ids.every((id) => Number.isInteger(id) && id >= 0 && id < 49406));
    assert.deepEqual(l!.tokenize(""), []);
  });

  it("gives rows of CLIP's sizes that follow from the text", async () => {
    const sd = await encodePrompt((await load("sd15")).clip, "a fox");
    assert.deepEqual(sd[0]![0].shape, [1, 77, 768]);
    assert.deepEqual((sd[0]![1].pooled_output as Tensor).shape, [1, 768]);
    const xl = await encodePrompt((await load("sdxl")).clip, "a fox");
    assert.deepEqual(xl[0]![0].shape, [1, 77, 2048]);
    assert.deepEqual((xl[0]![1].pooled_output as Tensor).shape, [1, 1280]);
    const { clip } = await createPreviewHost().loadCheckpoint("preview-sd15.safetensors");
    assert.deepEqual((await encodePrompt(clip, "a fox"))[0]![0].data, sd[0]![0].data);
    assert.notDeepEqual((await encodePrompt(clip, "a cat"))[0]![0].data, sd[0]![0].data);
  });

  it("refuses invalid chunks", async () => {
    const [l] = (await load("sd15")).clip.encoders;
    await assert.rejects(l!.encode([[49406, 49407]]), /expected chunks of 77 ids/);
    await assert.rejects(l!.encode([new Array<number>(77).fill(1e9)]), /received 1000000000/);
  });
});

describe("the preview model", () => {
  it("denoises towards a picture that follows from the prompt", async () => {
    for (const family of ["sd15", "sd3"] as const) {
      const { model, clip } = await load(family);
      const { channels } = model.sampling.latentFormat;
      const fox = await encodePrompt(clip, "a fox");
      const x = randn([2, channels, 12, 8], { seed: 1 });
      const clean = await model.predict!(x, 0, fox);
      assert.deepEqual(clean.data, x.data, "without noise the latent is its own estimate");
      const sigma = family === "sd3" ? 1 : 1000;
      const far = await model.predict!(x, sigma, fox);
      const otherNoise = await model.predict!(randn(x.shape, { seed: 2 }), sigma, fox);
      for (const [i, value] of far.data.entries()) assert.ok(Math.abs(value - otherNoise.data[i]!) < 1e-4);
      const cat = await model.predict!(x, sigma, await encodePrompt(clip, "a cat"));
      assert.ok(cat.data.some((value, i) => Math.abs(value - far.data[i]!) > 0.1));
    }
  });

  it("refuses latents of another format, and invalid noise levels", async () => {
    const { model } = await load("sd15");
    await assert.rejects(model.predict!(Tensor.zeros([1, 16, 2, 2]), 1, []), /\[B, 4, h, w\] for sd15/);
    for (const sigma of [-1, Number.NaN, Number.POSITIVE_INFINITY]) {
      await assert.rejects(model.predict!(Tensor.zeros([1, 4, 2, 2]), sigma, []), /sigma from 0/);
    }
    const signal = AbortSignal.abort();
    await rejectsAs(signal, model.predict!(Tensor.zeros([1, 4, 2, 2]), 1, [], signal));
  });

  it("gives the same bits with every instruction set and any number of threads", async () => {
    const native = loadNative();
    const [isa, threads] = [native.isa(), native.threads()];
    const render = async (): Promise<Buffer[]> => {
      const { model, clip, vae } = await createPreviewHost().loadCheckpoint("preview-sdxl.safetensors");
      const cond = await encodePrompt(clip, "a (red:1.3) fox, [winter]", { weightInterpretation: "comfy++" });
      const x = await vae.encode(picture(1, 72, 88));
      const clean = await model.predict!(x, 3.5, cond);
      const image = await vae.decode(clean);
      return [cond[0]![0], x, clean, image].map(({ data }) =>
        Buffer.from(data.buffer, data.byteOffset, data.byteLength),
      );
    };
    try {
      const reference = await render();
      for (const name of native.isas()) {
        for (const count of [1, 2, 7]) {
          native.setIsa(name);
          native.setThreads(count);
          for (const [i, bytes] of (await render()).entries()) {
            assert.ok(bytes.equals(reference[i]!), `${name}, ${count} threads, tensor ${i}`);
          }
        }
      }
    } finally {
      native.setIsa(isa);
      native.setThreads(threads);
    }
  });
});
