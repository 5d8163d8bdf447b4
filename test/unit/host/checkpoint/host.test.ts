import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { render } from "latentkit";
import { createCheckpointHost } from "latentkit/models";
import { readSafetensors } from "#src/io/safetensors.js";
import { refuses } from "../../../helpers/errors.js";
import { filesIn, hashesIn, temporaryFolder } from "../../../helpers/folders.js";
import { tinyHost, tinyModels } from "../../../helpers/models/tiny-host.js";
import { f32, writeWeights } from "../../../helpers/models/weight-file.js";
import { runtimeProcesses } from "../../../helpers/process/runtime-processes.js";

/** A graph of the original pipe loader, with a VAE, an earlier layer of the clip and a LoRA of its own. */
const pipeGraph = (changes: object) => ({
  "1": {
    class_type: "ext pipeLoader",
    inputs: {
      ckpt_name: "tiny-sd1.safetensors",
      positive: "a fox",
      negative: "text",
      batch_size: 1,
      empty_latent_width: 64,
      empty_latent_height: 64,
      ...changes,
    },
  },
  "2": {
    class_type: "KSampler",
    inputs: {
      seed: 1,
      steps: 2,
      cfg: 4,
      sampler_name: "euler",
      scheduler: "normal",
      denoise: 1,
      model: ["1", 1],
      positive: ["3", 2],
      negative: ["3", 3],
      latent_image: ["3", 4],
    },
  },
  "3": { class_type: "ext pipeOut", inputs: { pipe: ["1", 0] } },
  "4": { class_type: "VAEDecode", inputs: { samples: ["2", 0], vae: ["3", 5] } },
  "5": { class_type: "SaveImage", inputs: { images: ["4", 0], filename_prefix: "pipe" } },
});

describe("createCheckpointHost", () => {
  const folder = temporaryFolder();
  const host = tinyHost();

  it("lists the files of each kind that it loads", () => {
    assert.ok(host().checkpoints().includes("tiny-sd1.safetensors"));
    assert.deepEqual(host().files!("loras"), ["tiny-sd1-lora.safetensors"]);
    assert.deepEqual(host().files!("vae"), ["tiny-taesd.safetensors", "tiny-vae.safetensors"]);
    assert.equal(host().files!("style_models"), undefined);
    assert.equal(host().preview, false);
    assert.ok(Object.isFrozen(createCheckpointHost({ models: folder() })));
  });

  it("loads nothing of other kinds", async () => {
    await refuses(host().loadFile!("style_models", "x"), "host.missing", /host "checkpoint" cannot load style_models/);
  });

  it("starts the process of its networks when it is asked to, and ends it when it closes", async function () {
    const before = runtimeProcesses(this).length;
    const own = createCheckpointHost({ models: folder() });
    assert.equal(runtimeProcesses(this).length, before);
    own.start();
    while (runtimeProcesses(this).length === before) await setTimeout(5);
    await own.close();
    assert.equal(runtimeProcesses(this).length, before);
  });

  it("refuses options that are not its own, and folders that do not exist", async () => {
    const make = (options: object) => () => createCheckpointHost(options as never);
    await refuses(make({}), /./, /models/);
    await refuses(make({ models: [] }), /./, /a folder or a list of folders/);
    await refuses(make({ models: folder(), threds: 1 }), /./, /threds/);
    await refuses(make({ models: join(folder(), "none") }), "config.invalid", /none/);
  });

  it("serves the pipe loader with a VAE, an earlier layer of the clip and a LoRA", async () => {
    const of = async (name: string, changes: object) => {
      const outputDir = join(folder(), name);
      const { status, error } = await render(pipeGraph(changes), { host: host(), outputDir });
      assert.equal(status, "success", error?.message);
      assert.equal(filesIn(outputDir).length, 1);
      return Object.values(hashesIn(outputDir))[0];
    };
    const pictures = [
      await of("plain", {}),
      await of("vae", { vae_name: "tiny-vae.safetensors" }),
      await of("taesd", { vae_name: "tiny-taesd.safetensors" }),
      await of("skip", { clip_skip: -2 }),
      await of("lora", { lora_name: "tiny-sd1-lora.safetensors", lora_model_strength: 0.5, lora_clip_strength: 0.5 }),
    ];
    assert.equal(new Set(pictures).size, pictures.length);
  });

  it("renders Playground 2.5, an SDXL with noise levels and latents of its own", async () => {
    const models = join(folder(), "models");
    mkdirSync(join(models, "checkpoints"), { recursive: true });
    const from = join(tinyModels(), "checkpoints/tiny-sdxl.safetensors");
    const { tensors } = readSafetensors(readFileSync(from));
    const marks = { edm_mean: f32([1, 4, 1, 1]), edm_std: f32([1, 4, 1, 1]) };
    writeWeights(join(models, "checkpoints/playground.safetensors"), { ...Object.fromEntries(tensors), ...marks });
    const own = createCheckpointHost({ models });
    try {
      const graph = pipeGraph({ ckpt_name: "playground.safetensors" });
      const outputDir = join(folder(), "out");
      const { status, error } = await render(graph, { host: own, outputDir });
      assert.equal(status, "success", error?.message);
      const plain = join(folder(), "plain");
      await render(pipeGraph({ ckpt_name: "tiny-sdxl.safetensors" }), { host: host(), outputDir: plain });
      assert.notDeepEqual(Object.values(hashesIn(outputDir)), Object.values(hashesIn(plain)));
    } finally {
      await own.close();
    }
  });
});
