import assert from "node:assert/strict";
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { render } from "latentkit";
import { createCheckpointHost } from "latentkit/models";
import { FileHashes } from "#src/host/checkpoint/files/file-hashes.js";
import { ModelFolders } from "#src/host/checkpoint/files/model-folders.js";
import { provenanceOf } from "#src/host/checkpoint/host.js";
import type { RunNetwork, RuntimeState } from "#src/host/checkpoint/session/runtime.js";
import { readSafetensors } from "#src/io/safetensors.js";
import { refuses, rejectsAs } from "../../../helpers/errors.js";
import { filesIn, hashesIn, sha256, temporaryFolder } from "../../../helpers/folders.js";
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

const NAMES = ["checkpoints/a.safetensors", "checkpoints/b.safetensors", "loras/ink/wash.safetensors"];
const EMBEDDINGS = ["embeddings/style.safetensors", "embeddings/old.pt", "embeddings/other.safetensors"];

describe("provenanceOf", () => {
  const folder = temporaryFolder();
  /** Folders with files whose content is their name. */
  const source = (networks: readonly RunNetwork[] = []) => {
    for (const name of [...NAMES, ...EMBEDDINGS]) {
      mkdirSync(dirname(join(folder(), name)), { recursive: true });
      writeFileSync(join(folder(), name), name);
    }
    const state: RuntimeState = { version: "1.2.3", device: { provider: "cpu" }, threads: 3, sessions: [], networks };
    const runtime = { describe: () => state };
    return { folders: new ModelFolders(folder()), hashes: new FileHashes(), runtime };
  };
  const hashOf = (name: string) => sha256(readFileSync(join(folder(), name)));
  const real = (name: string) => realpathSync(join(folder(), name));
  const kindAndName = (path: string) => {
    const [kind, ...name] = path.split("/");
    return { kind: kind as "checkpoints" | "loras", name: name.join("/") };
  };

  it("names the files that names mean, and no other", async () => {
    const own = source();
    const files = [kindAndName(NAMES[0]!), { kind: "loras", name: "wash.safetensors" } as const];
    const { models } = await provenanceOf({ files, texts: [] }, own);
    assert.deepEqual(models, { [NAMES[0]!]: hashOf(NAMES[0]!), [NAMES[2]!]: hashOf(NAMES[2]!) });
  });

  it("names the embeddings of prompts, whatever stands around them", async () => {
    const own = source();
    const texts = ["a lake, (embedding:style, at dawn:1.2)", "(((embedding:old)))", "myembedding:other"];
    const { models } = await provenanceOf({ files: [], texts }, own);
    assert.deepEqual(Object.keys(models), ["embeddings/old.pt", "embeddings/style.safetensors"]);
  });

  it("leaves out what is not there or leads elsewhere", async () => {
    const own = source();
    const files = ["none.safetensors", "../loras/ink/wash.safetensors", "/etc/passwd"].map((name) => {
      return { kind: "checkpoints" as const, name };
    });
    assert.deepEqual(await provenanceOf({ files, texts: ["embedding:../loras/ink/wash"] }, own), { models: {} });
  });

  it("has the plans of networks of these files alone, the last of each", async () => {
    const [a, b, lora] = NAMES;
    source();
    const networks: RunNetwork[] = [
      { key: "", label: "UNet of a", plan: "stream", files: [real(a!)] },
      { key: "", label: "UNet of b", plan: "fold", files: [real(b!)] },
      { key: "", label: "VAE of a", plan: "stream", files: [real(a!)] },
      { key: "", label: "UNet of a", plan: "fold", files: [real(a!), real(lora!)] },
    ];
    const plansWith = async (...names: string[]) => {
      const { runtime } = await provenanceOf({ files: names.map(kindAndName), texts: [] }, source(networks));
      return runtime;
    };
    const facts = { name: "onnxruntime-node", version: "1.2.3", provider: "cpu", threads: 3 };
    const vae = { "VAE of a": "stream" };
    assert.deepEqual(await plansWith(a!), { ...facts, plans: { "UNet of a": "stream", ...vae } });
    assert.deepEqual(await plansWith(a!, lora!), { ...facts, plans: { "UNet of a": "fold", ...vae } });
    assert.equal(await plansWith(lora!), undefined);
  });

  it("ends if the run is interrupted", async () => {
    const named = { files: [kindAndName(NAMES[0]!)], texts: [] };
    const signal = AbortSignal.abort();
    await rejectsAs(signal, provenanceOf(named, source(), signal));
  });
});
