import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { seededRandom } from "../seeded-random.mjs";

const PROGRAM = join(dirname(fileURLToPath(import.meta.url)), "../../bin/latentkit.mjs");
/** A worker that is paused for so long has lost its runs. */
const PAUSE_MS = 5000;
const DATABASE_STOP_MS = 10_000;
const LONGEST_QUIET_MS = 2500;
/** A start takes less, and is cut somewhere. */
const LONGEST_START_MS = 600;
/** A process that has not started by then never will. */
const PATIENCE_MS = 120_000;

const ARGUMENTS = {
  serve: ["serve", "--port", "0"],
  front: ["serve", "--no-render", "--port", "0"],
  worker: ["worker", "--concurrency", "4"],
};

/** A process of the service, started again whenever it ends. */
export class Part {
  /** @type {string | null} */
  url = null;
  isBusy = false;
  /** @type {import("node:child_process").ChildProcess | undefined} */
  child;
  #args;
  #log = "";
  /** @type {Promise<unknown> | undefined} */
  #ended;

  /**
   * @param {keyof typeof ARGUMENTS} kind
   * @param {string} configFile
   */
  constructor(kind, configFile) {
    this.kind = kind;
    this.#args = [PROGRAM, ...ARGUMENTS[kind], "--config", configFile, "--json", "--quiet"];
  }

  /** Starts it until it stays: one that meets a stopped database ends with exit code 3. */
  async up() {
    for (const end = Date.now() + PATIENCE_MS; !(await this.#start()); await sleep(200)) {
      assert.equal(this.child?.exitCode, 3, this.#log);
      assert.ok(Date.now() < end, `a ${this.kind} does not start:\n${this.#log}`);
    }
  }

  /** Kills it, by chance once more while it recovers. @param {(n: number) => number} below */
  async kill(below) {
    await this.#down("SIGKILL");
    if (below(5) === 0) {
      this.#spawn();
      await sleep(below(LONGEST_START_MS));
      await this.#down("SIGKILL");
    }
    await this.up();
  }

  async drain() {
    await this.#down("SIGTERM");
    assert.equal(this.child?.exitCode, 0, `a ${this.kind} that was told to end:\n${this.#log}`);
    await this.up();
  }

  /** Ends it for good. */
  end() {
    return this.#down("SIGKILL");
  }

  async pause() {
    this.child?.kill("SIGSTOP");
    await sleep(PAUSE_MS);
    this.child?.kill("SIGCONT");
  }

  #spawn() {
    const child = spawn(process.execPath, this.#args, { stdio: ["ignore", "pipe", "pipe"] });
    this.child = child;
    this.#ended = once(child, "exit");
    child.stderr.on("data", (chunk) => {
      this.#log = (this.#log + chunk).slice(-4000);
    });
    return child;
  }

  async #start() {
    const child = this.#spawn();
    for await (const line of createInterface({ input: child.stdout })) {
      this.url = JSON.parse(line).url ?? null;
      child.stdout.resume();
      return true;
    }
    await this.#ended;
    return false;
  }

  /** @param {NodeJS.Signals} signal */
  async #down(signal) {
    this.url = null;
    this.child?.kill(signal);
    await this.#ended;
  }
}

/**
 * Kills, drains and pauses parts, and stops the database, `times` in all. Returns how often each.
 *
 * @param {{ parts: Part[], database: Pick<import("./databases.mjs").Postgres, "stop" | "start">, times: number, databaseStops: number, seed: number }} options
 */
export async function attack({ parts, database, times, databaseStops, seed }) {
  const below = seededRandom(seed);
  const counts = { killed: 0, drained: 0, paused: 0, database: 0 };
  const every = Math.max(1, Math.floor(times / Math.max(1, databaseStops)));
  /** @type {Promise<void>[]} */
  const repairs = [];
  /** @param {Part} part */
  const hurt = async (part) => {
    const choice = below(10);
    const [fault, count] = choice < 6 ? ["kill", "killed"] : choice < 8 ? ["drain", "drained"] : ["pause", "paused"];
    part.isBusy = true;
    try {
      await part[fault](below);
    } finally {
      part.isBusy = false;
    }
    counts[count] += 1;
  };
  for (let n = 1; n <= times; n++) {
    await sleep(below(LONGEST_QUIET_MS));
    if (databaseStops > 0 && n % every === 0) {
      database.stop(below(2) === 0 ? "fast" : "immediate");
      await sleep(DATABASE_STOP_MS);
      database.start();
      counts.database += 1;
      continue;
    }
    const idle = () => parts.filter(({ isBusy }) => !isBusy);
    // half of the processes work at any time, or the clients could only wait
    while (idle().length * 2 <= parts.length) await sleep(50);
    repairs.push(hurt(idle()[below(idle().length)]));
    if (n % 20 === 0) process.stderr.write(`${n} faults\n`);
  }
  await Promise.all(repairs);
  return counts;
}
