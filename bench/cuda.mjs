#!/usr/bin/env node
// The CUDA library beside the card's own copies and beside PyTorch eager on the same card, in turn. LATENTKIT_DEVICE=cuda:0
// has to be set. docs/cuda.md says how.
//   --json FILE  --markdown FILE   where the figures go      --turns N   turns for each subject, 15
//   --points     prints the points of gpu-check as JSON      --quick     small sizes, a few turns
//   --torch-device cpu             to try this program without a card
// Speed is a share of the card's own copies, measured in turn, so a throttled card judges itself.
import { writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { device } from "latentkit";
import { POINTS } from "../scripts/gpu-check/points.mjs";
import { startPython } from "./client.mjs";
import { SUBJECTS, TRAFFIC } from "./subjects/cuda.mjs";
import { summary, timesOf } from "./timing.mjs";

const { values: options } = parseArgs({
  options: {
    json: { type: "string" },
    markdown: { type: "string" },
    turns: { type: "string", default: "15" },
    points: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
    "torch-device": { type: "string", default: "cuda" },
  },
});
const TURN_MS = 20;
const REPEATS = 20;
const LEAST_SHARE = 0.85;
const LEAST_RATIO = 3;
const MIB = 2 ** 20;

const isQuick = options.quick;
const turns = isQuick ? 3 : Number(options.turns);
const FLOAT_BYTES = Float32Array.BYTES_PER_ELEMENT;
/** Operands of ours and of PyTorch lie on the card at once. */
const BUFFERS = 12;
const { cuda } = device();
const room = cuda.devices[0]?.freeMemoryBytes ?? 0;
const sizes = (isQuick ? [1] : [64, 256, 1024])
  .filter((mib) => mib * MIB * BUFFERS < room)
  .map((mib) => (mib * MIB) / FLOAT_BYTES);
const chainOf = isQuick ? { shape: [2, 4, 16, 16], mask: 64 } : { shape: [64, 4, 128, 128], mask: 512 };
const peerDevice = { device: options["torch-device"] };

const python = startPython();
try {
  const { versions, missing } = await python.ask({ mode: "versions" });
  const torch = missing === true ? undefined : versions.torch;
  const bandwidth = [];
  for (const n of sizes) bandwidth.push(...(await bandwidthOf(n, torch)));
  const report = { ...about(), torch: torch ?? null, bandwidth, chain: await chainRow(torch) };
  const page = markdown(report);
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(report, null, 1)}\n`);
  if (options.markdown !== undefined) writeFileSync(options.markdown, page);
  process.stdout.write(options.points ? `${JSON.stringify(points(report))}\n` : page);
} finally {
  await python.stop();
}

function about() {
  const [{ name, computeCapability }] = cuda.devices;
  return {
    date: new Date().toISOString().slice(0, 10),
    card: { name, computeCapability, driver: cuda.driverVersion },
    processor: cpus()[0].model,
    node: process.versions.node,
  };
}

/** Times of ours and of the peer in turn, a few milliseconds each. */
async function inTurn(ours, peer) {
  /** @type {Record<string, number[]>} */
  const values = { ours: [], peer: [] };
  let problem = peer === undefined ? "PyTorch is not installed" : undefined;
  for (let turn = 0; turn < turns; turn++) {
    for (const [name, call] of Object.entries(ours)) {
      values[name] ??= [];
      values[name].push(...(await timesOf(call, TURN_MS)));
    }
    if (problem !== undefined) continue;
    try {
      values.peer.push(...(await python.ask({ ...peer, mode: "time", ms: TURN_MS })).values);
    } catch (error) {
      problem = error.message.trim().split("\n").at(-1);
    }
  }
  await python.ask({ mode: "forget" });
  return { values, problem };
}

/** A row for each operation on n floats: its traffic in GB/s, beside that of the card's copies of the same length. */
async function bandwidthOf(n, torch) {
  const rows = [];
  const copy = SUBJECTS.copy({ n, repeats: REPEATS });
  for (const [operation, bytes] of Object.entries(TRAFFIC)) {
    if (operation === "copy") continue;
    const subject = SUBJECTS[operation]({ n, repeats: REPEATS });
    const hasPeer = torch !== undefined && bytes >= 8;
    const peer = hasPeer ? { subject: `cuda.${operation}`, args: { n, repeats: REPEATS, ...peerDevice } } : undefined;
    const { values } = await inTurn({ ours: subject.run, copy: copy.run }, peer);
    const speed = (times, each) => summary(times.map((ms) => (n * each * REPEATS) / ms / 1e6));
    const [ours, card] = [speed(values.ours, bytes), speed(values.copy, TRAFFIC.copy)];
    const row = { operation, mib: (n * FLOAT_BYTES) / MIB, ours, copy: card };
    rows.push({
      ...row,
      share: ours.median / card.median,
      torch: values.peer.length > 0 ? speed(values.peer, bytes) : null,
    });
    subject.forget();
  }
  copy.forget();
  return rows;
}

async function chainRow(torch) {
  const { run } = SUBJECTS.chain(chainOf);
  const peer = torch === undefined ? undefined : { subject: "cuda.chain", args: { ...chainOf, ...peerDevice } };
  const { values, problem } = await inTurn({ ours: run }, peer);
  const ours = summary(values.ours);
  if (values.peer.length === 0) return { ...chainOf, ours, torch: null, problem };
  const theirs = summary(values.peer);
  return { ...chainOf, ours, torch: theirs, ratio: theirs.median / ours.median };
}

function points({ bandwidth, chain }) {
  const worst = bandwidth.reduce((a, b) => (b.share < a.share ? b : a));
  const summary = `${bandwidth.length} rows, least: ${worst.operation} of ${worst.mib} MiB at ${worst.share.toFixed(2)} of ${worst.copy.median.toFixed(0)} GB/s`;
  const ms = (value) => `${value.median.toPrecision(3)} ms`;
  const state = (isGood) => (isGood ? "passed" : "failed");
  return [
    {
      point: POINTS.share,
      // small sizes try this program, not the card
      state: isQuick ? "not run" : state(worst.share >= LEAST_SHARE),
      detail: isQuick ? `only small sizes; ${summary}` : summary,
    },
    {
      point: POINTS.chain,
      state: chain.torch === null || isQuick ? "not run" : state(chain.ratio >= LEAST_RATIO),
      detail:
        chain.torch === null
          ? `ours ${ms(chain.ours)}; ${chain.problem}`
          : `${isQuick ? "only a small size; " : ""}ours ${ms(chain.ours)}, PyTorch ${ms(chain.torch)}: ${chain.ratio.toFixed(2)} times`,
    },
  ];
}

function markdown({ date, card, processor, node, torch, bandwidth, chain }) {
  const range = ({ median, p10, p90 }, digits) => [median, p10, p90].map((value) => value.toFixed(digits));
  const gbs = (speed) => {
    if (speed === null) return "";
    const [median, low, high] = range(speed, 0);
    return `${median} (${low} … ${high})`;
  };
  const us = (time) => {
    if (time === null) return "not run";
    const [median, low, high] = range({ median: time.median * 1e3, p10: time.p10 * 1e3, p90: time.p90 * 1e3 }, 0);
    return `${median} us (${low} … ${high})`;
  };
  const rows = bandwidth.map(
    ({ operation, mib, ours, copy, share, torch: theirs }) =>
      `| ${operation} | ${mib} MiB | ${gbs(ours)} | ${gbs(copy)} | ${share.toFixed(2)} | ${gbs(theirs)} |`,
  );
  return [
    `${date}: ${card.name}, capability ${card.computeCapability}, driver for CUDA ${card.driver}; ${processor}; Node ${node}; PyTorch ${torch ?? "not installed"}. Medians (p10 … p90).`,
    "",
    "| Operation | Output | Ours, GB/s | Copies of the card, GB/s | Share | PyTorch, GB/s |",
    "|---|---|---|---|---|---|",
    ...rows,
    "",
    `| Chain on ${chain.shape.join("x")} | Ours | PyTorch eager | Ratio |`,
    "|---|---|---|---|",
    `| latentNoisy, injectNoise | ${us(chain.ours)} | ${us(chain.torch)} | ${chain.ratio?.toFixed(2) ?? ""} |`,
    "",
  ].join("\n");
}
