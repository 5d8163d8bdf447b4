#!/usr/bin/env node
// Measures networks of full size on a provider beside the CPU, and prints a row of JSON for each result.
// Usage: measure.mjs weights|trial|tiny|text|unet|vae|sdxl|klein|render|loop|kill --folder DIR
//   --provider NAME   webgpu if absent      --plan keep|fold      --quick   tiny networks
import { execFileSync, fork, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { recogniseCheckpoint } from "../../../dist/host/checkpoint/families/recognise.js";
import { createCheckpointHost } from "../../../dist/host/checkpoint/index.js";
import { OnnxGraph } from "../../../dist/host/checkpoint/onnx/graph.js";
import { CPU_TARGET } from "../../../dist/host/checkpoint/onnx/target.js";
import { openModelFile } from "../../../dist/host/checkpoint/recognition/open.js";
import { chooseDevice, tryProviders } from "../../../dist/host/checkpoint/runtime/devices/choice.js";
import { buildTextEncoder } from "../../../dist/host/checkpoint/text-encoder/build.js";
import { buildUnet } from "../../../dist/host/checkpoint/unet/build.js";
import { buildVaeDecoder } from "../../../dist/host/checkpoint/vae/build.js";
import { networkOf } from "../../../dist/host/checkpoint/weights/network.js";
import { readValues } from "../../../dist/host/checkpoint/weights/values.js";
import { randn, render } from "../../../dist/index.js";
import { cardMemory, load, measure, noise, print, tensor } from "./session.mjs";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    folder: { type: "string", default: "" },
    provider: { type: "string", default: "webgpu" },
    plan: { type: "string", default: "keep" },
    quick: { type: "boolean", default: false },
  },
});
const { folder, quick, plan } = values;
const provider = /** @type {import("../../../dist/host/checkpoint/session/options.js").Provider} */ (values.provider);
const keep = plan === "keep";
/** The same for the host; the CPU has another name for it. */
const hostPlan = keep && values.provider === "cpu" ? "stream" : keep ? "keep" : "fold";
const file = (family) => join(folder, "checkpoints", `${family}.safetensors`);
const script = (name) => fileURLToPath(new URL(name, import.meta.url));
const times = quick ? 1 : 5;
/** First and last token of a prompt. */
const [START, END] = [49406n, 49407n];
/** Time for the driver to take a killed process's memory back. */
const RELEASE_MS = 500;

/** The parts of a checkpoint, and its graphs for a target. */
async function partsOf(family) {
  const parts = await recogniseCheckpoint(await openModelFile({ name: family, path: file(family) }), readValues);
  const { network, textEncoders } = parts;
  const [text] = textEncoders;
  if (network.what !== "UNet" || text?.kind !== "clip") throw new Error(`${family} is not a Stable Diffusion`);
  const encode = (part, target, overridable, build) => {
    const graph = new OnnxGraph("measured", target);
    build(networkOf(graph, part.weights), part.config);
    return graph.encode({ overridable: overridable && (target === undefined || "F16") });
  };
  return {
    config: /** @type {import("../../../dist/host/checkpoint/unet/build.js").UnetConfig} */ (network.part.config),
    hidden: text.part.config.hidden,
    unet: (target, kept) => encode(network.part, target, kept, buildUnet),
    vae: (target, kept) => encode(parts.vae, target, kept, (net, config) => buildVaeDecoder(net, config)),
    text: (target, kept) =>
      encode(text.part, target, kept, (net, config) => buildTextEncoder(net, config, { layer: -1, finalNorm: true })),
  };
}

/** Measures a graph on the provider, in the forms of its trial, against the CPU. */
async function against(name, make, feeds) {
  const { target } = await chooseDevice(provider);
  const cpu = { provider: /** @type {const} */ ("cpu"), times: 1 };
  const expected = await measure(`${name}, cpu`, await make(undefined, true), feeds, cpu);
  const isKept = keep && target.halfTypes.includes("F16");
  await measure(name, await make(target, isKept), feeds, { provider, times, expected, profile: true });
}

/**
 * Graphs and feeds of a transformer for one call, as its model makes them: a picture of so many cells on a side, and a text.
 *
 * @param {string} family
 * @param {number} side
 * @param {number} tokens
 */
async function callOf(family, side, tokens) {
  const opened = await openModelFile({ name: family, path: file(family) });
  const { network } = await recogniseCheckpoint(opened, readValues);
  let call;
  const runtime = {
    async run(source, feeds) {
      call = { source, feeds };
      return { out: feeds.x };
    },
  };
  const built = network.open(/** @type {any} */ (runtime), opened);
  const x = randn([1, built.inChannels, side, side], { seed: 1 });
  const context = randn([1, tokens, built.contextDim ?? 0], { seed: 2 });
  const entry = /** @type {import("../../../dist/host/types.js").Conditioning[number]} */ ([context, {}]);
  const run = { sampling: /** @type {any} */ (undefined), latent: x, negative: [], steps: 1 };
  const labels = built.labelInputs(entry, /** @type {any} */ ({}));
  await built.forRun(run).predict({ x, noisy: x, timestep: 0.7, context, labels, entry, entries: [entry], sigma: 0.7 });
  const { source, feeds } = call;
  return {
    make: (target, kept) => source.make(target === undefined ? "stream" : kept ? "keep" : "fold", target ?? CPU_TARGET),
    feeds: Object.fromEntries(Object.entries(feeds).map(([name, { data, shape }]) => [name, tensor(data, shape)])),
  };
}

/**
 * @param {import("../../../dist/host/checkpoint/unet/build.js").UnetConfig} config
 * @param {number} batch
 * @param {number} side
 */
const unetFeeds = ({ contextDim, labelDim }, batch, side) => ({
  x: noise([batch, 4, side, side], 1),
  timestep: tensor(new Float32Array(batch).fill(500), [batch]),
  context: noise([batch, 77, contextDim], 2),
  ...(labelDim !== undefined && { y: noise([batch, labelDim], 3) }),
});

const node = (class_type, inputs) => ({ class_type, inputs });

const picture = (seed) => ({
  1: node("CheckpointLoaderSimple", { ckpt_name: "sd1.safetensors" }),
  2: node("CLIPTextEncode", { clip: ["1", 1], text: "a lighthouse in a storm" }),
  3: node("CLIPTextEncode", { clip: ["1", 1], text: "blurry" }),
  4: node("EmptyLatentImage", { width: quick ? 128 : 512, height: quick ? 128 : 512, batch_size: 1 }),
  5: node("KSampler", {
    model: ["1", 0],
    positive: ["2", 0],
    negative: ["3", 0],
    latent_image: ["4", 0],
    seed,
    steps: quick ? 2 : 20,
    cfg: 7,
    sampler_name: "euler",
    scheduler: "normal",
    denoise: 1,
  }),
  6: node("VAEDecode", { samples: ["5", 0], vae: ["1", 2] }),
  7: node("SaveImage", { images: ["6", 0], filename_prefix: "picture" }),
});

const steps = {
  /** Writes sd1.safetensors, sdxl.safetensors and klein.safetensors into an empty folder. */
  weights() {
    mkdirSync(join(folder, "checkpoints"), { recursive: true });
    if (quick) execFileSync(process.execPath, [script("../../make-tiny-models.mjs"), folder]);
    // the transformers of tiny-sd1 see so few cells that faults hide
    for (const [family, tiny] of [
      ["sd1", "tiny-sd2"],
      ["sdxl", "tiny-sdxl"],
    ]) {
      if (quick) renameSync(file(tiny), file(family));
      else execFileSync(process.execPath, [script("../../make-full-size-model.mjs"), family, file(family)]);
      print({ name: family, bytes: statSync(file(family)).size });
    }
    const klein = [script("../../make-full-size-model.mjs"), quick ? "flux2-tiny" : "flux2-klein", file("klein")];
    execFileSync(process.execPath, klein);
    print({ name: "klein", bytes: statSync(file("klein")).size });
  },

  async trial() {
    const { verdicts } = await tryProviders();
    print({ ...verdicts.find((verdict) => verdict.provider === provider), name: "trial" });
  },

  /** Tiny networks of every kind, as the tests compare them. */
  async tiny() {
    const program = script("../../../build/test/helpers/networks/compare-network.js");
    const { TINY_NETWORKS } = await import(pathToFileURL(program.replace("compare-network", "tiny-networks")).href);
    const child = fork(program, [plan, "fused", provider]);
    child.on("exit", (code) => process.exit(code || 1));
    for (const name of Object.keys(TINY_NETWORKS)) {
      child.send(name);
      const [{ difference, copies }] = await once(child, "message");
      print({ name, difference, ...(copies > 0 && { elsewhere: { Memcpy: copies } }) });
    }
    child.removeAllListeners("exit").kill();
  },

  async text() {
    const { text, hidden } = await partsOf("sd1");
    const ids = BigInt64Array.from({ length: 2 * 77 }, (_, i) => (i % 77 === 0 ? START : i % 77 < 9 ? BigInt(i) : END));
    await against("text encoder", text, { tokens: tensor(ids, [2, 77]), embeddings: noise([1, hidden], 5) });
  },

  async unet() {
    const { unet, config } = await partsOf("sd1");
    await against("UNet of SD 1.5, 64x64", unet, unetFeeds(config, 2, quick ? 16 : 64));
  },

  async vae() {
    const { vae } = await partsOf("sd1");
    for (const side of quick ? [8] : [64, 128])
      await against(`VAE, ${8 * side}x${8 * side}`, vae, { z: noise([1, 4, side, side], 4) });
  },

  async sdxl() {
    const { unet, config } = await partsOf("sdxl");
    await against("UNet of SDXL, 128x128", unet, unetFeeds(config, 2, quick ? 16 : 128));
  },

  async klein() {
    const side = quick ? 4 : 32;
    const { make, feeds } = await callOf("klein", side, quick ? 32 : 512);
    await against(`Flux.2 klein 4B, ${side}x${side}`, make, feeds);
  },

  /** Pictures of a seed, another one and the first again, through the host. */
  async render() {
    const host = createCheckpointHost({ models: folder, device: provider, plan: hostPlan });
    const outputDir = mkdtempSync(join(tmpdir(), "latentkit-render-"));
    try {
      for (const seed of [7, 8, 7]) {
        const began = performance.now();
        const { files, error } = await render(picture(seed), { host, outputDir });
        if (files[0] === undefined) throw error;
        const sha256 = createHash("sha256").update(readFileSync(files[0].path)).digest("hex");
        print({ name: `seed ${seed}`, seconds: (performance.now() - began) / 1000, sha256, memoryMiB: cardMemory() });
      }
    } finally {
      await host.close();
      rmSync(outputDir, { recursive: true });
    }
  },

  /** Runs a UNet until it is killed. */
  async loop() {
    const { unet, config } = await partsOf("sd1");
    const session = await load(unet((await chooseDevice(provider)).target, keep), provider);
    for (;;) {
      await session.run(unetFeeds(config, 2, quick ? 16 : 64));
      print({ memoryMiB: cardMemory() });
    }
  },

  /** Kills a process in a run, twice. */
  async kill() {
    const args = [fileURLToPath(import.meta.url), "loop", "--folder", folder, "--provider", provider, "--plan", plan];
    for (const time of ["first", "second"]) {
      const before = cardMemory();
      const began = performance.now();
      const child = spawn(process.execPath, [...args, ...(quick ? ["--quick"] : [])], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      const row = await new Promise((resolve) => {
        child.stdout.once("data", resolve);
        child.once("close", () => resolve("{}"));
      });
      const seconds = (performance.now() - began) / 1000;
      const closed = new Promise((resolve) => child.once("close", resolve));
      const isRunning = child.kill("SIGKILL");
      await closed;
      await new Promise((resolve) => setTimeout(resolve, RELEASE_MS));
      const { memoryMiB } = JSON.parse(String(row).split("\n")[0]);
      print({ name: time, isRunning, seconds, beforeMiB: before, memoryMiB, afterMiB: cardMemory() });
    }
  },
};

await steps[positionals[0]]();
// a session of WebGPU keeps the process alive
process.exit(0);
