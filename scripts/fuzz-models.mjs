#!/usr/bin/env node
// Damages model files (bytes, keys, types, shapes, offsets, counts, lengths), .safetensors and GGUF, and loads them: each is
// recognised or refused in one sentence, soon; ONNX Runtime accepts the graphs of those that are recognised, and computes with
// their transformers and text encoders.
//   node scripts/fuzz-models.mjs [--models FOLDER] [--only TEXT] [--minutes 10] [--seed 1] [--sessions 50] [--calls 10]
// FOLDER holds models; those of make-tiny-models.mjs and of test/golden if absent. TEXT is part of the names of those that are
// damaged. One in --sessions graphs becomes a session, one in --calls networks that can be called is, 0 for none. A finding names
// its seed; --seed SEED --minutes 0 repeats that one.
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { parseArgs } from "node:util";
import { LatentkitError } from "#src/base/errors.js";
import { writeDamaged } from "./fuzz-models/damaged-file.mjs";
import { builtAs, CALLED, Calls, ROLE_NAMES, Sessions, unetOf } from "./fuzz-models/roles.mjs";
import { makeModels, samplesOf } from "./fuzz-models/samples.mjs";
import { seededRandom } from "./seeded-random.mjs";

/** Processor time of one file: the slowest sound one takes a tenth of it. */
const MOST_MS = 2000;
const MOST_CHARACTERS = 1000;
const MINUTE_MS = 60_000;
/** Roles that find nothing in most files, but refuse none, and the folders of theirs. */
const TAKE_ALL = ["LoRA", "embedding"];
const KINDS_TAKEN = ["loras/", "embeddings/"];
const CLIP_L = "text_encoders/clip_l.safetensors";

const { values: options } = parseArgs({
  options: {
    models: { type: "string" },
    only: { type: "string", default: "" },
    minutes: { type: "string", default: "10" },
    seed: { type: "string", default: "1" },
    sessions: { type: "string", default: "50" },
    calls: { type: "string", default: "10" },
  },
});

const folder = mkdtempSync(join(tmpdir(), "latentkit-fuzz-"));
process.env.LATENTKIT_CACHE_DIR = join(folder, "cache");
const tiny = join(folder, "tiny");
makeModels(tiny);
const source = options.models ?? tiny;
const samples = samplesOf(source).filter(({ name }) => name.includes(options.only));
if (samples.length === 0) fail(`${source} holds no models with ${JSON.stringify(options.only)} in their names.`);
/** A sound UNet that damaged LoRAs change. */
const base = await unetOf(join(tiny, "checkpoints/tiny-sd1.safetensors"));
// damaged files are of both kinds
const models = join(folder, "models");
const place = join(models, "diffusion_models");
mkdirSync(place, { recursive: true });
symlinkSync(place, join(models, "text_encoders"));
copyFileSync(join(tiny, CLIP_L), join(place, "clip_l.safetensors"));

const sessions = new Sessions();
const calls = new Calls(models, "clip_l.safetensors");
const [sessionsIn, callsIn] = [Number(options.sessions), Number(options.calls)];
const first = Number(options.seed);
const counts = { recognised: 0, refused: 0, sessions: 0, calls: 0 };
let longestMs = 0;
let findings = 0;
try {
  for (const sample of samples) await trySound(sample);
  const until = performance.now() + Number(options.minutes) * MINUTE_MS;
  let seed = first;
  for (; seed === first || performance.now() < until; seed++) {
    await tryDamaged(seed);
    if ((seed - first + 1) % 1000 === 0) console.log(`${seed - first + 1} files, ${JSON.stringify(counts)}`);
  }
  console.log(
    `${seed - first} damaged files from seed ${first}: ${counts.recognised} loads, ${counts.refused} refusals, ` +
      `${counts.sessions} sessions, ${counts.calls} calls, ${longestMs.toFixed(0)} ms at most, ${findings} findings.`,
  );
} finally {
  sessions.close();
  await calls.close();
  rmSync(folder, { recursive: true });
}
process.exitCode = findings === 0 ? 0 : 1;

/** A sample as it is has to be known, or else its damaged copies test nothing. */
async function trySound({ name, bytes }) {
  const path = join(place, `sound${extname(name)}`);
  writeFileSync(path, bytes);
  const roles = await tryFile(path, `${name} as it is`, seededRandom(0));
  rmSync(path);
  const isKnown = roles.some((role) => !TAKE_ALL.includes(role)) || KINDS_TAKEN.some((kind) => name.startsWith(kind));
  if (!isKnown) report(`${name} as it is`, "is not recognised");
}

async function tryDamaged(seed) {
  const next = seededRandom(seed);
  const sample = samples[next(samples.length)];
  const path = join(place, `damaged-${seed}${extname(sample.name)}`);
  const how = writeDamaged(path, sample, next);
  await tryFile(path, `seed ${seed}, ${sample.name}, ${how}`, next);
  rmSync(path);
}

/** Loads a file in every role, and returns those in which it is recognised. */
async function tryFile(path, what, next) {
  const roles = [];
  for (const role of ROLE_NAMES) {
    const before = process.cpuUsage();
    let networks = [];
    try {
      networks = await builtAs(role, path, base, join(folder, "unpacked"));
      counts.recognised++;
      roles.push(role);
    } catch (error) {
      counts.refused++;
      const flaw = flawOf(error);
      if (flaw !== undefined) report(what, `as ${role}: ${flaw}`);
    }
    const { user, system } = process.cpuUsage(before);
    const ms = (user + system) / 1000;
    longestMs = Math.max(longestMs, ms);
    if (ms > MOST_MS) report(what, `as ${role}: took ${ms.toFixed(0)} ms`);
    for (const network of networks) await tryNetwork(network, path, `${what}: ${network.name} as ${role}`, next);
  }
  return roles;
}

async function tryNetwork(network, path, what, next) {
  const isOne = (oneIn) => oneIn > 0 && next(oneIn) === 0;
  if (isOne(sessionsIn)) {
    counts.sessions++;
    const flaw = await sessions.flawOf(network);
    if (flaw !== undefined) report(what, flaw);
  }
  if (CALLED.includes(network.kind) && isOne(callsIn)) {
    counts.calls++;
    const flaw = await calls.flawOf(path, network.kind);
    if (flaw !== undefined) report(what, flaw);
  }
}

function report(what, flaw) {
  findings++;
  console.error(`${what}: ${flaw}`);
}

/** Why an error is none that a user can be shown; undefined for a sound one. */
function flawOf(error) {
  if (!(error instanceof LatentkitError)) return error.stack ?? String(error);
  const { message } = error;
  const isSentence = message.endsWith(".") && !message.includes("\n") && message.length <= MOST_CHARACTERS;
  return isSentence ? undefined : `no sentence: ${JSON.stringify(message.slice(0, MOST_CHARACTERS))}`;
}

/** @returns {never} */
function fail(message) {
  console.error(message);
  rmSync(folder, { recursive: true });
  process.exit(1);
}
