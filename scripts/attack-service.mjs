#!/usr/bin/env node
// Attacks a service of its own over the loopback and measures how long /health takes and how far its memory grows:
//   node scripts/attack-service.mjs [--only readers,pipelining] [--json]
// Exit code 1 where an attack delays /health or takes memory beyond the bounds below, or is not refused as it should be.
// Memory is read from /proc: Linux only.
// The bounds are 250 ms for /health and 300 MiB over the idle service; the row `nothing` shows how busy the machine
// is.
import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { allAttacks } from "./attack-service/attacks.mjs";
import { closeSockets } from "./attack-service/http.mjs";
import { PATIENCE_MS, startService, withTimeout } from "./attack-service/service.mjs";

const SCRIPT = fileURLToPath(import.meta.url);
const LONGEST_HEALTH_MS = 250;
const MOST_GROWTH_BYTES = 300 * 2 ** 20;
/** Time of an attack whose nodes compute. */
const COMPUTING_MS = 300_000;
const POLL_MS = 20;
const SAMPLE_MS = 100;

/** Polls /health from its own process, so that the attacker's work does not count as the service's. Sends each ms. */
async function pollHealth(url) {
  process.once("disconnect", () => process.exit());
  for (;;) {
    const since = performance.now();
    const status = await fetch(`${url}/health`, { signal: AbortSignal.timeout(PATIENCE_MS) }).then(
      (response) => response.text().then(() => response.status),
      () => 0,
    );
    process.send?.({ ms: performance.now() - since, status });
    await sleep(POLL_MS);
  }
}

async function main() {
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(130));
  const { values } = parseArgs({ options: { only: { type: "string" }, json: { type: "boolean", default: false } } });
  const attacks = allAttacks();
  const names = values.only?.split(",") ?? Object.keys(attacks);
  for (const name of names) {
    if (attacks[name] !== undefined) continue;
    process.stderr.write(`--only: expected some of ${Object.keys(attacks).join(", ")}, received "${name}".\n`);
    return 2;
  }
  const results = [];
  for (const name of names) {
    const service = await startService(attacks[name]);
    try {
      results.push(await measured(name, attacks[name], service));
    } finally {
      await service.stop();
    }
    if (values.json) console.log(JSON.stringify(results.at(-1)));
  }
  if (!values.json) print(results);
  return results.every(({ isHeld }) => isHeld) ? 0 : 1;
}

/** One attack on a fresh service. Memory counts from before its preparation, and what it leaves for two seconds does too. */
async function measured(name, { prepare, attack, computes = false, mostGrowth = MOST_GROWTH_BYTES }, service) {
  await sleep(500);
  const idle = service.memory();
  const prepared = await prepare?.(service);
  await sleep(500);
  const poller = fork(SCRIPT, ["--poll-health", service.url]);
  const latencies = [];
  let isAlive = true;
  poller.on("message", (/** @type {any} */ { ms, status }) => {
    latencies.push(ms);
    if (status !== 200) isAlive = false;
  });
  await once(poller, "message");
  await sleep(500);
  latencies.length = 0;
  let most = service.memory();
  const sampler = setInterval(() => {
    most = Math.max(most, service.memory());
  }, SAMPLE_MS);
  const since = performance.now();
  const refusal = await withTimeout(attack(service, prepared), computes ? COMPUTING_MS : PATIENCE_MS).catch(
    (error) => error.message,
  );
  await sleep(2000);
  clearInterval(sampler);
  // one that hangs has sent nothing yet
  poller.kill("SIGKILL");
  closeSockets();
  const seconds = (performance.now() - since) / 1000;
  const health = Math.max(0, ...latencies);
  const growth = most - idle;
  const problems = [
    ...(typeof refusal === "string" ? [refusal] : []),
    ...(isAlive && latencies.length > 0 ? [] : ["/health did not respond"]),
    ...(health <= LONGEST_HEALTH_MS ? [] : [`/health over ${LONGEST_HEALTH_MS} ms`]),
    // the pictures of a run are in memory, for any client
    ...(computes || growth <= mostGrowth ? [] : [`over ${mostGrowth / 2 ** 20} MiB`]),
  ];
  return {
    attack: name,
    health_ms: Math.round(health),
    polls: latencies.length,
    idle_mib: Math.round(idle / 2 ** 20),
    growth_mib: Math.round(growth / 2 ** 20),
    seconds: Math.round(seconds * 10) / 10,
    isHeld: problems.length === 0,
    problems,
  };
}

function print(results) {
  const rows = [["attack", "/health at most", "memory", "grew by", "took", ""]];
  for (const { attack, health_ms, idle_mib, growth_mib, seconds, problems } of results) {
    const verdict = problems.length === 0 ? "holds" : problems.join("; ");
    rows.push([attack, `${health_ms} ms`, `${idle_mib} MiB`, `${growth_mib} MiB`, `${seconds} s`, verdict]);
  }
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  for (const row of rows)
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column]))
        .join("  ")
        .trimEnd(),
    );
}

if (process.argv[2] === "--poll-health") await pollHealth(process.argv[3]);
else process.exitCode = await main();
