#!/usr/bin/env node
// Kills a batch with SIGKILL at random moments and resumes it each time; the files must be those of a quiet run.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const [items, kills] = [Number(process.argv[2] ?? 500), Number(process.argv[3] ?? 50)];
const graph = join(root, "test/graphs/inject-noise-to-latent.json");
const folder = mkdtempSync(join(tmpdir(), "latentkit-soak-"));
const script = join(folder, "batch.mjs");
writeFileSync(
  script,
  `import { batch } from ${JSON.stringify(new URL("../dist/index.js", import.meta.url).href)};
  const [out, items] = process.argv.slice(2);
  const values = Array.from({ length: Number(items) }, (_, seed) => ({ "4.seed": seed, scene: "lake " + (seed % 7) }));
  const options = { outputDir: out, journal: out + "/batch.jsonl", resume: true, concurrency: 2 };
  let end;
  for await (const event of batch(${JSON.stringify(graph)}, values, options)) {
    if (event.type === "item-failed") throw event.error;
    if (event.type === "item-done") process.stdout.write(".");
    end = event;
  }
  process.exitCode = end.status === "success" ? 0 : 1;`,
);

/** Runs the batch; killed so many ms after its first item, or, where `early`, after its start. */
function run(out, killAfter, early) {
  const child = spawn(process.execPath, [script, out, String(items)], { stdio: ["ignore", "pipe", "inherit"] });
  let timer;
  const start = () => {
    if (killAfter !== undefined) timer ??= setTimeout(() => child.kill("SIGKILL"), killAfter);
  };
  if (early) start();
  let done = 0;
  let began;
  child.stdout.on("data", (dots) => {
    done += dots.length;
    began ??= performance.now();
    start();
  });
  return new Promise((resolve) => {
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, done, ms: performance.now() - began });
    });
  });
}

function hashes(out) {
  const files = readdirSync(out, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = files
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .filter((path) => !path.endsWith(".jsonl"));
  return Object.fromEntries(
    paths.sort().map((path) => [path.slice(out.length), createHash("sha256").update(readFileSync(path)).digest("hex")]),
  );
}

try {
  const [quiet, killed] = [join(folder, "quiet"), join(folder, "killed")];
  const whole = await run(quiet);
  if (whole.code !== 0) throw new Error("The quiet run failed.");
  let [died, finished] = [0, 0];
  for (let i = 0; i < kills; i++) {
    // each life gets its share of the work; every fourth is killed while it starts and clears up
    const early = i % 4 === 3;
    const { code, signal, done } = await run(killed, Math.random() * (early ? 600 : (whole.ms / kills) * 1.6), early);
    finished += done;
    if (signal === "SIGKILL") died++;
    else if (code !== 0) throw new Error(`A resumed run ended with ${code}.`);
  }
  const { code, done } = await run(killed);
  if (code !== 0) throw new Error(`The last run ended with ${code}.`);
  const [expected, actual] = [hashes(quiet), hashes(killed)];
  const wrong = [...new Set([...Object.keys(expected), ...Object.keys(actual)])].filter(
    (path) => expected[path] !== actual[path],
  );
  const lives = `${died} kills, ${finished} items finished in killed lives and ${done} in the last`;
  console.log(`${lives}, ${Object.keys(actual).length} files.`);
  if (wrong.length > 0) throw new Error(`${wrong.length} files differ, first ${wrong.slice(0, 5).join(", ")}.`);
  if (Object.keys(actual).length !== items) throw new Error(`Expected ${items} files.`);
  console.log("The same files as an uninterrupted run, and no temporary one.");
} finally {
  rmSync(folder, { recursive: true, force: true });
}
