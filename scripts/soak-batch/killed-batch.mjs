import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const PROGRAM = fileURLToPath(new URL("batch.mjs", import.meta.url));
/** Share of a life that a kill may take at most: some lives end by themselves. */
const LONGEST_LIFE = 1.6;
/** Time in which a process starts and clears up. */
const START_MS = 900;

/**
 * Runs a batch; killed so many ms after its first item, or, with `isEarly`, after its start. `ms` counts from its first item.
 *
 * @param {readonly string[]} args
 * @param {number} [killAfter]
 * @returns {Promise<{ code: number | null, signal: NodeJS.Signals | null, done: number, memory: number[], ms: number }>}
 */
export function runBatch(args, killAfter, isEarly = false) {
  const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  /** @type {NodeJS.Timeout | undefined} */
  let timer;
  const start = () => {
    if (killAfter !== undefined) timer ??= setTimeout(() => child.kill("SIGKILL"), killAfter);
  };
  if (isEarly) start();
  let began = Number.NaN;
  let text = "";
  child.stdout.on("data", (chunk) => {
    text += chunk;
    began ||= performance.now();
    start();
  });
  return new Promise((resolve) => {
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      const lines = text.split("\n");
      const memory = lines.filter((line) => line !== "").map(Number);
      resolve({ code, signal, done: lines.length - 1, memory, ms: performance.now() - began });
    });
  });
}

/**
 * Kills a batch at random moments, resumes it each time, and lets the last life end. `ms`: time of a life that is not killed.
 * Returns what happened, in words.
 *
 * @param {readonly string[]} args
 * @param {number} kills
 * @param {number} ms
 */
export async function killAndResume(args, kills, ms) {
  let [died, finished] = [0, 0];
  for (let i = 0; i < kills; i++) {
    // each life gets its share of the work; every fourth is killed while it starts and clears up
    const isEarly = i % 4 === 3;
    const longest = isEarly ? START_MS : (ms / kills) * LONGEST_LIFE;
    const { code, signal, done } = await runBatch(args, Math.random() * longest, isEarly);
    finished += done;
    if (signal === "SIGKILL") died++;
    else if (code !== 0) throw new Error(`A resumed run ended with ${code}.`);
  }
  const { code, done } = await runBatch(args);
  if (code !== 0) throw new Error(`The last run ended with ${code}.`);
  return `${died} kills, ${finished} items finished in killed lives and ${done} in the last`;
}
