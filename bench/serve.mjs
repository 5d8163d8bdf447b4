// A process that is timed: `node bench/serve.mjs` answers requests of bench/client.mjs, one JSON line each.
// latentkit and the npm peers live in one process; LATENTKIT_THREADS says with how many threads.
import { createInterface } from "node:readline";
import { peers } from "./subjects/npm.mjs";
import { ours } from "./subjects/ours.mjs";
import { timesOf } from "./timing.mjs";

const { subjects, versions } = await peers();
const known = { ...ours, ...subjects };
const prepared = new Map();

async function answer({ subject, args, mode, ms }) {
  if (mode === "versions") return { versions };
  if (mode === "forget") {
    prepared.clear();
    return {};
  }
  const make = known[subject];
  if (make === undefined) return { missing: true };
  const key = JSON.stringify([subject, args]);
  if (!prepared.has(key)) prepared.set(key, await make(args));
  const call = prepared.get(key);
  return { values: mode === "value" ? [await call()] : await timesOf(call, ms) };
}

for await (const line of createInterface({ input: process.stdin })) {
  const reply = await answer(JSON.parse(line)).catch((error) => ({ error: error.stack }));
  process.stdout.write(`${JSON.stringify(reply)}\n`);
}
