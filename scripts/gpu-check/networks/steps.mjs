// The steps of gpu-check --models: networks on a provider of ONNX Runtime beside the CPU, and beside PyTorch on the card.
import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { complaint } from "../child.mjs";

const POINTS = {
  weights: "checkpoints of full size, with random weights",
  trial: "a form of attention in which the provider computes the trial's network rightly",
  tiny: "tiny networks of every kind within 1e-4 of the CPU, no copy inside",
  text: "text encoder within 1e-4 of the CPU",
  unet: "UNet of SD 1.5 within 1e-4 of the CPU, no copy inside",
  fold: "the same with weights converted to float32 when they are loaded",
  vae: "VAE decoder within 1e-4 of the CPU, no copy inside",
  render: "the same picture for the same seed, through the host",
  sdxl: "UNet of SDXL within 1e-4 of the CPU, no copy inside",
  klein: "transformer of Flux.2 klein within 1e-4 of the CPU, no copy inside",
  kill: "a killed process gives its memory back, and another one runs",
  torch: "the same sizes in PyTorch on the card",
};
/** Relative difference of a sound network; a broken attention was off by a tenth. */
const TOLERANCE = 1e-4;
/** Memory of the card that a driver may keep, in MiB. */
const SPARE_MIB = 64;

const program = (name) => fileURLToPath(new URL(name, import.meta.url));

/** Folder of the checkpoints: 17 GB. */
const models = mkdtempSync(join(tmpdir(), "latentkit-networks-"));
process.on("exit", () => rmSync(models, { recursive: true, force: true }));

/** Runs a program that prints rows, and judges them: `judge` returns what is wrong, or nothing. */
async function rowsOf(check, point, command, judge) {
  const [file, args] = command;
  const ran = await check.children(file, [...args, ...(check.quick ? ["--quick"] : [])], { limit: check.limit });
  const rows = ran.stdout
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line));
  for (const row of rows) appendFileSync(join(check.out, "networks.jsonl"), `${JSON.stringify({ point, ...row })}\n`);
  if (ran.code !== 0) return [{ point, state: "failed", detail: complaint(ran) }];
  const fault = judge(rows);
  return [{ point, state: fault === undefined ? "passed" : "failed", detail: fault ?? rows.map(inWords).join("; ") }];
}

const inWords = ({ name, ...facts }) =>
  [
    `${name}:`,
    ...Object.entries(facts).map(
      ([key, value]) => `${key} ${typeof value === "object" ? JSON.stringify(value) : value}`,
    ),
  ].join(" ");

/** A step of measure.mjs. */
const measured =
  (name, judge, ...more) =>
  (check) => {
    const args = [program("measure.mjs"), name, "--folder", models, "--provider", check.provider, ...more];
    return rowsOf(check, POINTS[more.includes("fold") ? "fold" : name], [process.execPath, args], judge);
  };

/** Returns what is wrong with networks that were compared with the CPU. */
export function differing(rows) {
  for (const { name, difference, elsewhere = {} } of rows) {
    if (difference !== undefined && !(difference <= TOLERANCE)) return `${name} differs from the CPU by ${difference}`;
    const copies = Object.entries(elsewhere).filter(([op]) => /memcpy/i.test(op) && !/text encoder/.test(name));
    if (copies.length > 0) return `${name}: ${JSON.stringify(Object.fromEntries(copies))}`;
  }
  return rows.some(({ difference }) => difference !== undefined) ? undefined : "nothing was compared";
}

/** Returns what is wrong with pictures of a seed, of another one, and of the first again. */
export function unequal(rows) {
  const [first, other, again] = rows;
  if (first?.sha256 !== again?.sha256) return "the same seed gave other bytes";
  return first?.sha256 === other?.sha256 ? "two seeds gave the same bytes" : undefined;
}

/** Returns what is wrong with processes that were killed in a run. */
export function lingering(rows) {
  if (!rows.every(({ isRunning }) => isRunning)) return "a process had ended before it was killed";
  const kept = rows.find(({ beforeMiB, afterMiB }) => afterMiB - beforeMiB > SPARE_MIB);
  return kept === undefined ? undefined : `${kept.afterMiB - kept.beforeMiB} MiB are still taken`;
}

async function torch(check) {
  const point = POINTS.torch;
  const there = await check.children(check.python, ["-c", "import torch"], { limit: check.limit });
  if (there.code !== 0) return [{ point, state: "not run", detail: `${check.python} has no PyTorch` }];
  const command = [check.python, [program("torch_networks.py")]];
  return rowsOf(check, point, command, (rows) => rows.find(({ error }) => error !== undefined)?.error);
}

const step = (name, seconds, run) => ({ name, seconds, points: [POINTS[name]], run, needs: "provider" });

export const networkSteps = [
  step(
    "weights",
    90,
    measured("weights", () => undefined),
  ),
  step(
    "trial",
    60,
    measured("trial", ([trial]) => (trial.isUsable ? undefined : trial.reason)),
  ),
  step("unet", 80, measured("unet", differing)),
  step("render", 60, measured("render", unequal)),
  step("tiny", 90, measured("tiny", differing)),
  step("text", 40, measured("text", differing)),
  step("vae", 120, measured("vae", differing)),
  step("fold", 60, measured("unet", differing, "--plan", "fold")),
  step("kill", 60, measured("kill", lingering)),
  step("torch", 60, torch),
  step("klein", 90, measured("klein", differing)),
  step("sdxl", 180, measured("sdxl", differing)),
];
