#!/usr/bin/env node
// Estimates of the memory of networks beside what a call takes: the private memory of the process that runs them (Linux).
//   node bench/network-memory.mjs FILE … [--side 512] [--words 100] [--plan stream|fold] [--clip-type flux2]
// A FILE is a transformer, a VAE or a text encoder, such as scripts/make-full-size-model.mjs writes; a picture of that side is
// made, seen, encoded or decoded, a prompt of about so many words read. Each call has a process of its own.
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { parseArgs } from "node:util";
import { randn, Tensor } from "latentkit";
import { flux2Clip } from "#src/host/checkpoint/families/clip-types.js";
import { recogniseCheckpoint } from "#src/host/checkpoint/families/recognise.js";
import { openModelFile } from "#src/host/checkpoint/recognition/open.js";
import { createRuntime } from "#src/host/checkpoint/runtime/client.js";
import { ModelPart } from "#src/host/checkpoint/session/model-part.js";
import { pictureRows, seenPicture } from "#src/host/checkpoint/text-encoder/qwen-vision.js";
import { Qwen3Clip } from "#src/host/checkpoint/text-encoder/qwen3.js";
import { Qwen25Clip } from "#src/host/checkpoint/text-encoder/qwen25.js";
import { recogniseTextEncoders } from "#src/host/checkpoint/text-encoder/recognise.js";
import { BuiltT5 } from "#src/host/checkpoint/text-encoder/t5.js";
import { BuiltVae } from "#src/host/checkpoint/vae/model.js";
import { recogniseVae } from "#src/host/checkpoint/vae/recognise.js";
import { readValues } from "#src/host/checkpoint/weights/values.js";

const { values: options, positionals: paths } = parseArgs({
  allowPositionals: true,
  options: {
    side: { type: "string", default: "512" },
    words: { type: "string", default: "100" },
    plan: { type: "string" },
    "clip-type": { type: "string" },
  },
});
const plan = /** @type {import("#src/host/checkpoint/session/options.js").Plan | undefined} */ (options.plan);
const side = Number(options.side);
const prompt = "fox ".repeat(Number(options.words));
const CHANNELS_OF_FLUX2 = 128;
/** Embedded sizes beside the pooled text in SDXL's label. */
const NUMBERS_OF_SDXL = 6 * 256;
/** How often the process is looked at. */
const INTERVAL_MS = 3;

for (const path of paths) {
  const file = await openModelFile({ name: basename(path), path });
  for (const [name, call] of (await networkCall(file)) ?? callsOf(file)) await measure(`${file.name}, ${name}`, call);
}

/** Calls of a VAE or a text encoder. */
function callsOf(file) {
  const [text] = orUndefined(() => recogniseTextEncoders(file)) ?? [];
  if (text === undefined) {
    const vae = recogniseVae(file);
    if (vae.kind !== "vae") throw new Error(`${file.name} is a tiny VAE`);
    const part = ModelPart.of("VAE", file, vae.part);
    const built = (runtime) => new BuiltVae(runtime, { kind: "vae", part });
    return [
      [
        `decode to ${side}`,
        (runtime) => {
          const decoder = built(runtime);
          const cells = side / decoder.cell;
          return decoder.decode(randn([1, decoder.latentChannels, cells, cells], { seed: 1 }));
        },
      ],
      [`encode from ${side}`, (runtime) => built(runtime).encode(picture())],
    ];
  }
  switch (text.kind) {
    case "qwen3": {
      const part = ModelPart.of("Qwen3", file, text.part);
      const clip = (runtime) =>
        options["clip-type"] === "flux2" ? flux2Clip(runtime, part) : new Qwen3Clip(runtime, part);
      return [[`${options.words} words`, (runtime) => clip(runtime).encodeText(prompt)]];
    }
    case "qwen2.5-vl": {
      const part = ModelPart.of("Qwen2.5-VL", file, text.part);
      const tower = text.tower && ModelPart.of("vision tower", file, text.tower);
      return [
        [`${options.words} words`, (runtime) => new Qwen25Clip(runtime, part).encodeText(prompt)],
        ...(tower === undefined
          ? []
          : [[`picture of ${side}`, (runtime) => pictureRows(seenPicture(picture()), { part: tower, runtime })]]),
      ];
    }
    case "t5":
      return [
        [
          "256 tokens",
          (runtime) => new BuiltT5(runtime, ModelPart.of("T5", file, text.part)).encode("fox", { fewest: 256 }, false),
        ],
      ];
    default:
      throw new Error(`${file.name} is a text encoder of CLIP`);
  }
}

/** A call of the transformer or UNet of a file, for one picture; undefined for other networks. */
async function networkCall(file) {
  const { network } = (await recogniseCheckpoint(file, readValues).catch(() => undefined)) ?? {};
  if (network === undefined) return undefined;
  const { contextWidth, contextDim, captionWidth, labelDim } = /** @type {Record<string, number>} */ (
    network.part.config
  );
  const sampling = /** @type {any} */ (undefined);
  const call = (runtime) => {
    const built = network.open(runtime, file);
    const cells = side / (built.outChannels === CHANNELS_OF_FLUX2 ? 16 : 8);
    const x = randn([1, built.inChannels, cells, cells], { seed: 1 });
    const context = randn([1, Number(options.words), contextWidth ?? contextDim ?? captionWidth], { seed: 2 });
    // of SDXL; others take zeros
    const pooled = labelDim === undefined ? undefined : randn([1, labelDim - NUMBERS_OF_SDXL], { seed: 3 });
    const entry = /** @type {import("#src/host/types.js").Conditioning[number]} */ ([
      context,
      { pooled_output: pooled },
    ]);
    const labels = built.labelInputs(entry, { kind: "sdxl", cells: [cells, cells], isNegative: false });
    const run = { sampling, latent: x, negative: [], steps: 1 };
    return built
      .forRun(run)
      .predict({ x, noisy: x, timestep: 0.7, context, labels, entry, entries: [entry], sigma: 1 });
  };
  return [[`picture of ${side}`, call]];
}

function picture() {
  const { data } = randn([1, side, side, 3], { seed: 4 });
  return Tensor.from(
    data.map((value) => Math.min(1, Math.abs(value))),
    [1, side, side, 3],
  );
}

async function measure(name, call) {
  let estimate;
  const onLoad = (_label, state, memory) => {
    if (state === "loading") estimate = memory;
  };
  const runtime = createRuntime({ plan, device: "cpu", onLoad });
  let peak = 0;
  const timer = setInterval(() => {
    peak = Math.max(peak, privateBytes(runtime.describe().processId));
  }, INTERVAL_MS);
  const start = performance.now();
  try {
    await call(runtime);
    const seconds = ((performance.now() - start) / 1000).toFixed(0);
    const { bytes, work } = estimate;
    const [own, run, measured] = [bytes, work, peak].map((each) => (each / 1e9).toFixed(2));
    const ratio = ((bytes + work) / peak).toFixed(2);
    const how = runtime.describe().networks[0]?.plan;
    console.log(`${name} (${how}): ${own} + ${run} GB estimated, ${measured} measured: ${ratio} (${seconds} s)`);
  } finally {
    clearInterval(timer);
    await runtime.close();
  }
}

/** Memory of a process that belongs to no file. */
function privateBytes(id) {
  try {
    return Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${id}/status`, "utf8"))?.[1]) * 1024;
  } catch {
    return 0;
  }
}

function orUndefined(recognise) {
  try {
    return recognise();
  } catch {
    return undefined;
  }
}
