// A process that is timed: `node bench/serve.mjs` reads requests of bench/client.mjs and writes replies, one JSON line each.
// latentkit and the npm peers live in one process; LATENTKIT_THREADS says with how many threads.
import { createInterface } from "node:readline";
import { imports } from "./subjects/imports.mjs";
import { peers } from "./subjects/npm.mjs";
import { ours } from "./subjects/ours.mjs";
import { timesOf } from "./timing.mjs";

const { subjects, versions } = await peers();
const all = { ...ours, ...imports, ...subjects };
const prepared = new Map();

async function handle({ subject, args, mode, ms }) {
  if (mode === "versions") return { versions };
  if (mode === "forget") {
    prepared.clear();
    return {};
  }
  const make = all[subject];
  if (make === undefined) return { missing: true };
  const key = JSON.stringify([subject, args]);
  if (!prepared.has(key)) prepared.set(key, await make(args));
  const call = prepared.get(key);
  return { values: mode === "value" ? [await call()] : await timesOf(call, ms) };
}

for await (const line of createInterface({ input: process.stdin })) {
  const reply = await handle(JSON.parse(line)).catch((error) => ({ error: error.stack }));
  process.stdout.write(`${JSON.stringify(reply)}\n`);
}
