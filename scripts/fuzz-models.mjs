#!/usr/bin/env node
// Damages model files (bytes, keys, types, shapes, offsets, lengths) and loads them: each is recognised or refused in one
// sentence, soon, and ONNX Runtime accepts the graphs of those that are recognised.
//   node scripts/fuzz-models.mjs [--models FOLDER] [--minutes 10] [--seed 1] [--sessions 50]
// FOLDER holds models; those of make-tiny-models.mjs where absent. One in --sessions graphs becomes a session, 0 for none. A finding
// names its seed; --seed SEED --minutes 0 repeats that one.
import { execFileSync } from "node:child_process";
import { closeSync, ftruncateSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { LatentkitError } from "#src/base/errors.js";
import { buildControlNet } from "#src/host/checkpoint/networks/controlnet.js";
import { buildQwen3 } from "#src/host/checkpoint/networks/qwen3.js";
import { buildTaesdDecoder } from "#src/host/checkpoint/networks/taesd.js";
import { buildTextEncoder } from "#src/host/checkpoint/networks/text-encoder.js";
import { buildUnet } from "#src/host/checkpoint/networks/unet.js";
import { buildUpscaler } from "#src/host/checkpoint/networks/upscaler.js";
import { buildVaeDecoder, buildVaeEncoder } from "#src/host/checkpoint/networks/vae.js";
import { buildZImage } from "#src/host/checkpoint/networks/z-image.js";
import { listZImageControl } from "#src/host/checkpoint/networks/z-image-control.js";
import { OnnxGraph } from "#src/host/checkpoint/onnx/graph.js";
import { controlNetPart } from "#src/host/checkpoint/recognition/controlnet.js";
import { openModelFile } from "#src/host/checkpoint/recognition/open.js";
import { recogniseCheckpoint } from "#src/host/checkpoint/recognition/recognise.js";
import { recogniseTextEncoders } from "#src/host/checkpoint/recognition/text-encoder.js";
import { zImageControlPart } from "#src/host/checkpoint/recognition/transformers/z-image-control.js";
import { upscalerPart } from "#src/host/checkpoint/recognition/upscaler.js";
import { recogniseVae } from "#src/host/checkpoint/recognition/vae.js";
import { RuntimeProcess } from "#src/host/checkpoint/runtime/process.js";
import { sessionOptions } from "#src/host/checkpoint/runtime/session-options.js";
import { readEmbedding } from "#src/host/checkpoint/tokenizer/embedding-file.js";
import { changesOf } from "#src/host/checkpoint/weights/lora/changes.js";
import { readLora } from "#src/host/checkpoint/weights/lora/lora-file.js";
import { networkOf } from "#src/host/checkpoint/weights/network.js";
import { readValues } from "#src/host/checkpoint/weights/values.js";
import { seededRandom } from "./seeded-random.mjs";

/** Processor time of one file: the slowest sound one takes a tenth of it. */
const MOST_MS = 2000;
const MOST_CHARACTERS = 1000;
/** Larger files would fill the disk where it does not keep holes. */
const MOST_BYTES = 2 ** 28;
const LENGTH_BYTES = 8;
const CHANGES = 4;
const MINUTE_MS = 60_000;
const TYPES = { F64: 8, F32: 4, F16: 2, BF16: 2, F8_E4M3: 1, F8_E5M2: 1, I64: 8, U8: 1, BOOL: 1 };
const STRANGE_NUMBERS = [-1, 0, 1, 1.5, 3, 31, 33, 2 ** 20, 2 ** 31, 2 ** 53, 1e300, null, "4", [4], true];
const STRANGE_KEYS = ["", "__proto__", "constructor", "é\u0000\n", "a".repeat(1e5), ".".repeat(5000), "weight"];

const { values: options } = parseArgs({
  options: {
    models: { type: "string" },
    minutes: { type: "string", default: "10" },
    seed: { type: "string", default: "1" },
    sessions: { type: "string", default: "50" },
  },
});

/** Builders by the parts of a file. */
const ROLES = {
  checkpoint: async (file) => {
    const { network, vae, textEncoders } = await recogniseCheckpoint(file, readValues);
    return [
      network.kind === "unet" ? ["UNet", network.part, buildUnet] : ["Z-Image transformer", network.part, buildZImage],
      ...(vae === undefined ? [] : vaeGraphs(vae)),
      ...textEncoders.map(textGraph),
    ];
  },
  "text encoder": async (file) => recogniseTextEncoders(file).map(textGraph),
  "model patch": async (file) => [["model patch", zImageControlPart(file), listZImageControl]],
  VAE: async (file) => {
    const { kind, part } = recogniseVae(file);
    return kind === "vae" ? vaeGraphs(part) : [["TAESD", part, buildTaesdDecoder]];
  },
  ControlNet: async (file) => [["ControlNet", controlNetPart(file), buildControlNet]],
  upscaler: async (file) => [["upscale model", upscalerPart(file), buildUpscaler]],
  LoRA: async (file) => {
    const lora = await readLora(file, readValues);
    const changes = changesOf(lora, { kind: "unet", weights: base.weights }, 0.5);
    return [["UNet with LoRA", base, buildUnet, changes]];
  },
  embedding: async ({ path }) => {
    readEmbedding({ kind: "embeddings", name: basename(path), path }, { name: "l", width: 32 });
    return [];
  },
};

const buildEncoder = (network, config) => buildTextEncoder(network, config, { layer: -2, finalNorm: true });
const vaeGraphs = (vae) => [
  ["VAE decoder", vae, buildVaeDecoder],
  ...(vae.config.hasEncoder ? [["VAE encoder", vae, buildVaeEncoder]] : []),
];

const folder = mkdtempSync(join(tmpdir(), "latentkit-fuzz-"));
const source = options.models ?? tinyModels(join(folder, "tiny"));
const models = listModels(source);
if (models.length === 0) fail(`${source} holds no models.`);
/** A sound UNet that damaged LoRAs change. */
const base = await firstUnet();
const oneIn = Number(options.sessions);
const until = performance.now() + Number(options.minutes) * MINUTE_MS;
const first = Number(options.seed);
const counts = { recognised: 0, refused: 0, sessions: 0 };
let longestMs = 0;
let findings = 0;
let runtime;
let session = 0;
try {
  let seed = first;
  for (; seed === first || performance.now() < until; seed++) {
    await tryOne(seed);
    if ((seed - first + 1) % 1000 === 0) console.log(`${seed - first + 1} files, ${JSON.stringify(counts)}`);
  }
  console.log(
    `${seed - first} damaged files from seed ${first}: ${counts.recognised} loads, ${counts.refused} refusals, ` +
      `${counts.sessions} sessions, ${longestMs.toFixed(0)} ms at most, ${findings} findings.`,
  );
} finally {
  runtime?.kill();
  rmSync(folder, { recursive: true });
}
process.exitCode = findings === 0 ? 0 : 1;

/** Damages one file and loads it in every role. */
async function tryOne(seed) {
  const next = seededRandom(seed);
  const model = models[next(models.length)];
  const path = join(folder, "damaged.safetensors");
  const how = write(path, model, next);
  const report = (what) => {
    findings++;
    console.error(`seed ${seed}, ${model.name}, ${how}: ${what}`);
  };
  for (const [role, load] of Object.entries(ROLES)) {
    const before = process.cpuUsage();
    let graphs = [];
    try {
      // read anew in each role, as the loaders do
      graphs = encoded(await load(await openModelFile({ name: basename(path), path })));
      counts.recognised++;
    } catch (error) {
      counts.refused++;
      const flaw = flawOf(error);
      if (flaw !== undefined) report(`as ${role}: ${flaw}`);
    }
    const { user, system } = process.cpuUsage(before);
    const ms = (user + system) / 1000;
    longestMs = Math.max(longestMs, ms);
    if (ms > MOST_MS) report(`as ${role}: took ${ms.toFixed(0)} ms`);
    for (const [name, graph] of graphs) {
      if (oneIn === 0 || next(oneIn) > 0) continue;
      const flaw = await sessionFlaw(graph);
      if (flaw !== undefined) report(`${name} as ${role}: ${flaw}`);
    }
  }
}

function encoded(parts) {
  return parts.map(([name, { config, weights }, build, changes]) => {
    const graph = new OnnxGraph("damaged");
    build(networkOf(graph, weights, changes), config);
    return [name, graph.encode({ overridable: true })];
  });
}

/** Why an error is none that a user can be shown; undefined for a sound one. */
function flawOf(error) {
  if (!(error instanceof LatentkitError)) return error.stack ?? String(error);
  const { message } = error;
  const isSentence = message.endsWith(".") && !message.includes("\n") && message.length <= MOST_CHARACTERS;
  return isSentence ? undefined : `no sentence: ${JSON.stringify(message.slice(0, MOST_CHARACTERS))}`;
}

/** Why a graph becomes no session; undefined where it does. */
async function sessionFlaw({ bytes, folder: root }) {
  runtime = runtime?.isAlive ? runtime : new RuntimeProcess();
  session++;
  counts.sessions++;
  try {
    await runtime.ready;
    const task = "A session";
    const settings = sessionOptions({ provider: "cpu", threads: 1 }, "stream", root);
    const sent = await runtime.sendBytes(bytes, task);
    await runtime.create({ session, model: sent, options: settings }, task);
    await runtime.request({ type: "release", session }, task);
    return undefined;
  } catch (error) {
    return error.message;
  }
}

/** Writes a damaged copy of a model and tells how. */
function write(path, { bytes, header, start }, next) {
  const handle = openSync(path, "w");
  try {
    switch (next(6)) {
      case 0: {
        const length = next(2) === 0 ? next(start) : next(bytes.length);
        writeSync(handle, bytes.subarray(0, length));
        return `${length} of ${bytes.length} bytes`;
      }
      case 1: {
        const damaged = Buffer.from(bytes);
        const count = 1 + next(8);
        for (let i = 0; i < count; i++) damaged[next(start)] = next(256);
        writeSync(handle, damaged);
        return `${count} bytes of the header`;
      }
      default: {
        const entries = Object.entries(structuredClone(header));
        const count = 1 + next(CHANGES);
        const changes = Array.from({ length: count }, () => damage(entries, next));
        const isSound = next(4) > 0;
        const end = isSound ? laidOut(entries) : bytes.length - start;
        const text = Buffer.from(JSON.stringify(Object.fromEntries(entries)));
        const length = Buffer.alloc(LENGTH_BYTES);
        length.writeBigUInt64LE(BigInt(text.length));
        writeSync(handle, length);
        writeSync(handle, text);
        writeSync(handle, bytes.subarray(start, start + end));
        ftruncateSync(handle, LENGTH_BYTES + text.length + end);
        return `${changes.join(", ")}${isSound ? ", laid out anew" : ""}`;
      }
    }
  } finally {
    closeSync(handle);
  }
}

/** Changes one entry of a header, and tells how. */
function damage(entries, next) {
  const at = next(entries.length);
  const [key, value] = entries[at];
  // an earlier change may have left no object
  const entry = Object(value);
  const any = (list) => list[next(list.length)];
  switch (next(9)) {
    case 0:
      if (entries.length > 1) entries.splice(at, 1);
      return `without ${key}`;
    case 1: {
      const [cut, to] = [next(key.length + 1), next(12)];
      entries[at][0] = next(3) === 0 ? any(STRANGE_KEYS) : `${key.slice(0, cut)}${to}${key.slice(cut + next(2))}`;
      return `${key} renamed`;
    }
    case 2:
      [entries[at][0], entries[next(entries.length)][0]] = [any(entries)[0], key];
      return `${key} and another exchanged`;
    case 3:
      entry.dtype = next(6) === 0 ? any(["F4", "", 7, null]) : any(Object.keys(TYPES));
      return `${key} as ${entry.dtype}`;
    case 4:
      if (Array.isArray(entry.shape) && entry.shape.length > 0)
        entry.shape[next(entry.shape.length)] = any(STRANGE_NUMBERS);
      return `a side of ${key}`;
    case 5:
      if (Array.isArray(entry.shape))
        entry.shape = any([[], entry.shape.slice(1), [...entry.shape, 1], entry.shape.toReversed()]);
      return `the sides of ${key}`;
    case 6:
      if (Array.isArray(entry.data_offsets)) entry.data_offsets[next(2)] = any([...STRANGE_NUMBERS, next(1e6)]);
      return `the offsets of ${key}`;
    case 7:
      entries[at][1] = any([null, 5, "text", [], {}, { ...entry, shape: entry.shape?.length }]);
      return `${key} as another value`;
    default: {
      // a whole family of keys: what a converter with a bug writes
      const parts = key.split(".");
      const part = any(parts);
      const to = any(["", "0", "99", "model", "x".repeat(200)]);
      for (const each of entries) each[0] = each[0].replaceAll(part === "" ? "." : part, to);
      return `${part} as ${to.slice(0, 8)} in all keys`;
    }
  }
}

/** Gives all tensors offsets that fit them, where their sides allow it, and returns the end of the last. */
function laidOut(entries) {
  let end = 0;
  for (const [, entry] of entries) {
    if (!Array.isArray(entry?.shape) || !Object.hasOwn(TYPES, entry.dtype)) continue;
    const size = entry.shape.reduce((product, side) => product * side, TYPES[entry.dtype]);
    if (!Number.isSafeInteger(size) || size < 0 || end + size > MOST_BYTES) continue;
    entry.data_offsets = [end, end + size];
    end += size;
  }
  return end;
}

/** The safetensors files below a folder. */
function listModels(root) {
  const names = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".safetensors"),
  );
  return names.sort().map((name) => {
    const bytes = readFileSync(join(root, name));
    const start = LENGTH_BYTES + Number(bytes.readBigUInt64LE());
    return {
      name,
      path: join(root, name),
      bytes,
      start,
      header: JSON.parse(bytes.toString("utf8", LENGTH_BYTES, start)),
    };
  });
}

function textGraph({ kind, part }) {
  return ["text encoder", part, kind === "clip" ? buildEncoder : buildQwen3];
}

async function firstUnet() {
  for (const { path } of models) {
    try {
      const file = await openModelFile({ name: basename(path), path });
      const { network } = await recogniseCheckpoint(file, readValues);
      if (network.kind === "unet") return network.part;
    } catch (error) {
      if (!(error instanceof LatentkitError)) throw error;
    }
  }
  return fail(`${source} holds no checkpoint.`);
}

function tinyModels(target) {
  execFileSync(process.execPath, [fileURLToPath(new URL("make-tiny-models.mjs", import.meta.url)), target]);
  return target;
}

/** @returns {never} */
function fail(message) {
  console.error(message);
  process.exit(1);
}
