import assert from "node:assert/strict";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Checkpoint, executeGraph, randn, render, Tensor } from "latentkit";
import { CheckpointControlNet } from "#src/host/checkpoint/unet/control.js";
import { readSafetensors, toTensor } from "#src/io/safetensors.js";
import { refuses } from "../../../../helpers/errors.js";
import { copyWeights, someContext, tinyHost, tinyModels } from "../../../../helpers/models/tiny-host.js";
import { f32, type RawTensor, writeWeights } from "../../../../helpers/models/weight-file.js";

const tiny = (name: string): string => join(tinyModels(), `${name}.safetensors`);

describe("ModelLoader", () => {
  const more = mkdtempSync(join(tmpdir(), "latentkit-loader-"));
  const own = (name: string): string => join(more, `${name}.safetensors`);
  before(() => {
    for (const kind of ["checkpoints/sub", "text_encoders", "diffusion_models", "vae_approx"])
      mkdirSync(join(more, kind), { recursive: true });
    const sd1 = tiny("checkpoints/tiny-sd1");
    const isUnet = (key: string): boolean => key.startsWith("model.diffusion_model.");
    copyWeights(sd1, own("checkpoints/sub/bare"), (key) => (isUnet(key) ? key : undefined));
    copyWeights(sd1, own("diffusion_models/alone"), (key) =>
      isUnet(key) ? key.slice("model.diffusion_model.".length) : undefined,
    );
    const [prefix, first] = ["cond_stage_model.transformer.", "conditioner.embedders.0.transformer."];
    copyWeights(sd1, own("text_encoders/clip-l"), (key) =>
      key.startsWith(prefix) ? key.slice(prefix.length) : undefined,
    );
    copyWeights(tiny("checkpoints/tiny-sdxl"), own("checkpoints/one-encoder"), (key) =>
      key.startsWith(first) ? undefined : key,
    );
    copyFileSync(sd1, own("checkpoints/changing"));
    copyFileSync(tiny("vae/tiny-taesd"), own("vae_approx/taesd_decoder"));
    copyFileSync(tiny("vae/tiny-vae"), own("checkpoints/vae-as-checkpoint"));
  });
  after(() => rmSync(more, { recursive: true }));
  const host = tinyHost(() => [more]);

  it("loads a checkpoint of every family", async () => {
    const families = {
      "tiny-sd1": "sd15",
      "tiny-sd1-inpainting": "sd15",
      "tiny-sd2": "sd21",
      "tiny-sd2-v": "sd21",
      "tiny-sdxl": "sdxl",
      "tiny-sdxl-refiner": "sdxl-refiner",
    };
    for (const [name, sampling] of Object.entries(families)) {
      const { model, clip } = await host().loadCheckpoint(`${name}.safetensors`);
      assert.equal(model.sampling.name, sampling, name);
      assert.equal(clip.encoders.length, name === "tiny-sdxl" ? 2 : 1);
    }
  });

  it("says which loader has what a checkpoint lacks", async () => {
    const { clip, vae } = await host().loadCheckpoint("bare.safetensors");
    const sentence = (part: string, loader: string) =>
      new RegExp(`^Model "sub/bare\\.safetensors" contains no ${part}: load one with ${loader}\\.$`);
    await refuses(() => clip.encoders, "model.invalid", sentence("text encoder", "CLIPLoader or DualCLIPLoader"));
    const decoded = vae.decode!(Tensor.zeros([1, 4, 8, 8]));
    await refuses(decoded, "model.invalid", sentence("VAE", "VAELoader"));
    await refuses(vae.encode!(Tensor.zeros([1, 64, 64, 3])), "model.invalid", sentence("VAE", "VAELoader"));
    const one = host().loadCheckpoint("one-encoder.safetensors");
    await refuses(one, "model.invalid", /expected text encoders of 128 channels, as its UNet takes, received 64/);
  });

  it("computes the same from 8-bit weights with factors as from the products, in every part", async () => {
    const file = readSafetensors(readFileSync(tiny("checkpoints/tiny-sd1")));
    const wrapped: Record<string, RawTensor> = {};
    for (const [key, { dtype, shape, bytes }] of file.tensors) {
      wrapped[`module.${key}`] = { dtype, shape, bytes };
      if (dtype !== "F16" || !key.endsWith(".weight")) continue;
      // halves are exact: the exponent is one less, and no weight is that small
      const values = toTensor({ dtype, shape, bytes }).data.map((value) => value / 2);
      wrapped[`module.${key}`] = f32(shape, [...values]);
      wrapped[`module.${key}_scale`] =
        shape.length === 2 ? f32([shape[0]!, 1], new Array(shape[0]!).fill(2)) : f32([], [2]);
    }
    writeWeights(own("checkpoints/scaled"), wrapped);
    const [plain, scaled] = [
      await host().loadCheckpoint("tiny-sd1.safetensors"),
      await host().loadCheckpoint("scaled.safetensors"),
    ];
    const x = randn([1, 4, 8, 8], { seed: 1 });
    const cond = [[someContext(1), {}]] as never;
    const chunk = [[49406, 320, 2368, ...new Array<number>(74).fill(49407)]];
    const net = await host().loadFile!("controlnet", "tiny-sd1-control.safetensors");
    const { part } = net as CheckpointControlNet;
    const control = {
      net: new CheckpointControlNet(part, true),
      hint: Tensor.full([1, 64, 64, 3], 0.5),
      strength: 1,
      start: 0,
      end: 1,
    };
    const guided = [[someContext(1), { control }]] as never;
    const computed = async ({ model, clip, vae }: Checkpoint) => [
      (await model.predict!(x, 1, cond)).data,
      (await model.predict!(x, 1, guided)).data,
      (await clip.encoders[0]!.encode(chunk)).cond.data,
      (await vae.decode!(x)).data,
    ];
    assert.deepEqual(await computed(scaled), await computed(plain));
  });

  it("finds a file that was added after its folder was listed, in a graph at once", async () => {
    const load = async (vae_name: string) =>
      render(
        { 1: { class_type: "VAELoader", inputs: { vae_name } } },
        { host: host(), targets: ["1"], output: "memory" },
      );
    mkdirSync(join(more, "vae/sub"), { recursive: true });
    await load("tiny-vae.safetensors");
    for (const name of ["one.safetensors", "sub/two.safetensors", "sub/three.safetensors"]) {
      copyFileSync(tiny("vae/tiny-vae"), join(more, "vae", name));
      const { error, status } = await load(name.slice(name.lastIndexOf("/") + 1));
      assert.deepEqual([status, error], ["success", undefined]);
    }
  });

  it("names files as graphs do, with the input, in the errors of nodes", async () => {
    const page = "<!DOCTYPE html><html><body>You have to sign in to download this file.</body></html>";
    const name = `${"a-folder-with-a-long-name/".repeat(3)}page.safetensors`;
    for (const [kind, class_type, input] of [
      ["vae", "VAELoader", "vae_name"],
      ["checkpoints", "CheckpointLoaderSimple", "ckpt_name"],
    ] as const) {
      const path = join(more, kind, name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, page);
      const graph = { 7: { class_type, inputs: { [input]: name } } };
      const run = render(graph, { host: host(), targets: ["7"], output: "memory" });
      const { message, details } = await refuses(run, "model.unsupported");
      const start = `Node 7 (${class_type}), input "${input}": Model "${name}": expected a .safetensors or GGUF file, received a web page: `;
      assert.ok(message.startsWith(start), message);
      assert.deepEqual([details.nodeId, details.input], ["7", input]);
    }
  });

  it("lists the nearest names if one is missing", async () => {
    const work = host().loadCheckpoint("tiny-sd1-inpaintng.safetensors");
    await refuses(work, /^model\.|^file\./, /tiny-sd1-inpaintng/, /tiny-sd1-inpainting\.safetensors/);
  });

  it("gives one object for a file as long as it does not change", async () => {
    const name = "changing.safetensors";
    const first = await host().loadCheckpoint(name);
    assert.equal(await host().loadCheckpoint(name), first);
    assert.equal(host().fileOf!("checkpoints", "bare.safetensors"), "sub/bare.safetensors");
    const { mtimeMs } = statSync(own("checkpoints/changing"));
    utimesSync(own("checkpoints/changing"), new Date(), new Date(mtimeMs + 5000));
    const x = randn([1, 4, 8, 8], { seed: 1 });
    const cond = [[someContext(1), {}]] as never;
    await refuses(
      first.model.predict!(x, 1, cond),
      "model.invalid",
      /^Model "changing\.safetensors" has changed since it was/,
    );
    const second = await host().loadCheckpoint(name);
    assert.notEqual(second, first);
    assert.deepEqual([...(await second.model.predict!(x, 1, cond)).shape], [1, 4, 8, 8]);
  });

  it("loads a UNet and a text encoder alone, and they compute as in their checkpoint", async () => {
    const { model, clip } = await host().loadCheckpoint("tiny-sd1.safetensors");
    const alone = await host().loadFile!("diffusion_models", "alone.safetensors");
    const x = randn([1, 4, 8, 8], { seed: 1 });
    const cond = [[someContext(1), {}]] as never;
    const [a, b] = [await model.predict!(x, 1, cond), await alone.predict!(x, 1, cond)];
    assert.deepEqual(b.data, a.data);
    const encoder = await host().loadFile!("text_encoders", "clip-l.safetensors");
    const chunk = [[49406, 320, 2368, ...new Array<number>(74).fill(49407)]];
    const [c, d] = [await clip.encoders[0]!.encode(chunk), await encoder.encoders[0]!.encode(chunk)];
    assert.deepEqual(d.cond.data, c.cond.data);
    const signal = new AbortController().signal;
    const odd = host().loadFile!("text_encoders", "clip-l.safetensors", signal, { type: "hidream" });
    await refuses(
      odd,
      "model.unsupported",
      /expected one of the types stable_diffusion, sdxl, flux, sd3 for a text encoder l, received type "hidream"/,
    );
    // a file that is loaded already too
    for (let time = 0; time < 2; time++) {
      const warnings: string[] = [];
      const settings = { weight_dtype: "fp8_e4m3fn" };
      await host().loadFile!("diffusion_models", "alone.safetensors", signal, settings, (text) => warnings.push(text));
      assert.match(warnings.join(), /"alone\.safetensors": weight_dtype fp8_e4m3fn has no effect/);
    }
  });

  it("decodes previews with a tiny decoder of the folder vae_approx, by the format of the latents", async () => {
    const { model } = await host().loadCheckpoint("tiny-sd1.safetensors");
    const denoised = randn([1, 4, 8, 6], { seed: 7 });
    const picture = model.preview!(denoised);
    const tinyVae = await host().loadFile!("vae", "tiny-taesd.safetensors");
    // a file without vae_scale takes latents in the model's units
    const expected = await tinyVae.decode(denoised.clone());
    // sampling writes over an estimate as soon as it is reported
    denoised.data.fill(0);
    const { shape, data } = await picture;
    assert.deepEqual([...shape], [1, 64, 48, 3]);
    assert.ok(data.every((value, i) => Math.abs(value - expected.data[i]!) < 1e-5));
    const { model: sdxl } = await host().loadCheckpoint("tiny-sdxl.safetensors");
    assert.equal(sdxl.preview, undefined);
  });

  it("reports previews of the tiny decoder behind the steps that they show", async () => {
    const node = (class_type: string, inputs: object) => ({ class_type, inputs });
    const graph = {
      1: node("CheckpointLoaderSimple", { ckpt_name: "tiny-sd1.safetensors" }),
      2: node("CLIPTextEncode", { clip: ["1", 1], text: "a lake" }),
      3: node("EmptyLatentImage", { width: 64, height: 64, batch_size: 1 }),
      4: node("KSampler", {
        model: ["1", 0],
        positive: ["2", 0],
        negative: ["2", 0],
        latent_image: ["3", 0],
        seed: 1,
        steps: 3,
        cfg: 5,
        sampler_name: "euler",
        scheduler: "normal",
        denoise: 1,
      }),
      5: node("SaveLatent", { samples: ["4", 0], filename_prefix: "latent" }),
    };
    const steps: [number, readonly number[] | undefined][] = [];
    for await (const event of executeGraph(graph, { host: host(), outputDir: join(more, "out"), previews: true })) {
      if (event.type !== "progress") continue;
      steps.push([event.value, (event.preview as Tensor | undefined)?.shape]);
    }
    const previews = steps.filter(([, preview]) => preview !== undefined);
    assert.ok(previews.length > 0);
    for (const [, preview] of previews) assert.deepEqual(preview, [1, 64, 64, 3]);
    const values = steps.map(([value]) => value);
    assert.deepEqual(
      values,
      values.toSorted((a, b) => a - b),
    );
    assert.equal(steps.filter(([, preview]) => preview === undefined).length, 3);
  });

  it("refuses files of another kind by name", async () => {
    await refuses(host().loadCheckpoint("vae-as-checkpoint.safetensors"), "model.unsupported", /received a VAE/);
  });
});
