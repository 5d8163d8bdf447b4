#!/usr/bin/env node
// npm run bench: ours beside the peers, operation by operation; docs/performance.md says how.
//   npm run bench                          the whole table, some two minutes
//   npm run bench -- randn "PNG encode"    rows whose name holds one of these
//   --json FILE     the figures as JSON          --no-peers   latentkit alone
//   --turns N       turns for each subject, 25   --save       makes this run, or these rows of it, the committed one
//   --against FILE  earlier figures to compare with, bench/figures.json; a loss above 10 % ends with status 1
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { device } from "latentkit";
import { startNode, startPython } from "./client.mjs";
import { better, isSameMachine, joined, lossesOf } from "./figures.mjs";
import { idOf, measureRow } from "./interleave.mjs";
import { writePicture } from "./pictures.mjs";
import { heading, table } from "./report.mjs";
import { rows } from "./rows.mjs";

const root = new URL("..", import.meta.url);
const COMMITTED = fileURLToPath(new URL("bench/figures.json", root));

const { values: options, positionals: names } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: "string" },
    against: { type: "string", default: COMMITTED },
    turns: { type: "string", default: "25" },
    "no-peers": { type: "boolean", default: false },
    save: { type: "boolean", default: false },
  },
});

const folder = mkdtempSync(join(tmpdir(), "latentkit-bench-"));
const started = new Map();
const once = (key, start) => {
  if (!started.has(key)) started.set(key, start());
  return started.get(key);
};
const processes = {
  node: (threads, isPinned = false) => once(`node ${threads} ${isPinned}`, () => startNode(threads, isPinned)),
  python: (isPinned = false) => once(`python ${isPinned}`, () => startPython(isPinned)),
};

try {
  const chosen = rows(folder).filter((row) => names.length === 0 || names.some((name) => idOf(row).includes(name)));
  if (chosen.length === 0) throw new Error(`no row is named ${names.join(" or ")}`);
  if (options.save && options["no-peers"]) throw new Error("--save needs the peers");
  const report = await measureAll(chosen);
  const losses = report.losses.map(({ id }) => id);
  print(`${heading(report)}\n\n${table(report.rows, new Set(losses))}\n`);
  print(summaryOf(report));
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(report, null, 1)}\n`);
  if (options.save) save(report);
  else if (losses.length > 0) process.exitCode = 1;
} finally {
  for (const process of started.values()) await process.stop();
  rmSync(folder, { recursive: true });
}

async function measureAll(chosen) {
  for (const name of new Set(chosen.flatMap(({ pictures = [] }) => pictures))) writePicture(folder, name);
  const setting = { processes, turns: Number(options.turns), hasPeers: !options["no-peers"] };
  const about = {
    date: new Date().toISOString().slice(0, 10),
    load: loadavg()[0],
    machine: { processor: cpus()[0].model, processors: availableParallelism(), isa: device().isa },
    versions: { node: process.versions.node, ...(setting.hasPeers && (await versionsOfPeers())) },
  };
  const before = earlier(about);
  const measured = [];
  for (const row of chosen) {
    progress(`${measured.length + 1}/${chosen.length} ${idOf(row)}`);
    let result = await measureRow(row, setting);
    // a loss counts when it is measured twice
    if (lossesOf([result], before).length > 0) result = better(result, await measureRow(row, setting), before);
    measured.push(result);
  }
  progress("");
  return { ...about, rows: measured, losses: lossesOf(measured, before) };
}

async function versionsOfPeers() {
  const replies = [processes.node(1), processes.python()].map((process) => process.ask({ mode: "versions" }));
  return Object.assign({}, ...(await Promise.all(replies)).map(({ versions }) => versions));
}

/** The rows to compare with; none if they come from another machine. */
function earlier(about) {
  if (!existsSync(options.against)) return [];
  const before = JSON.parse(readFileSync(options.against, "utf8"));
  if (isSameMachine(about, before)) return before.rows;
  process.stderr.write(`The earlier figures are of another machine (${heading(before)}): nothing to compare with.\n`);
  return [];
}

function summaryOf({ rows, losses }) {
  const marks = rows.flatMap((row) => [row, ...row.peers]).filter(({ isReached }) => isReached !== undefined);
  const lines = [`${marks.filter(({ isReached }) => isReached).length} of ${marks.length} "Must" are reached.`];
  for (const { id, before, now } of losses) {
    lines.push(`Slower by more than 10 %: ${id}: ${before.toPrecision(3)} before, ${now.toPrecision(3)} now.`);
  }
  return lines.join("\n");
}

/** @param {any} results */
function save({ losses, ...measured }) {
  const report = names.length === 0 ? measured : withCommitted(measured);
  writeFileSync(COMMITTED, `${JSON.stringify(report, null, 1)}\n`);
}

/** The committed run with the rows of this one in it. */
function withCommitted({ rows: measured, ...about }) {
  const committed = JSON.parse(readFileSync(COMMITTED, "utf8"));
  if (!isSameMachine(about, committed)) throw new Error("--save of some rows needs the machine of the committed run");
  return { ...committed, rows: joined(committed.rows, measured, rows(folder).map(idOf)) };
}

function progress(text) {
  if (process.stderr.isTTY) process.stderr.write(`\r${text.padEnd(70)}\r`);
}

function print(text) {
  process.stdout.write(`${text}\n`);
}
