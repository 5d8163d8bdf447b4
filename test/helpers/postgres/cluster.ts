import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Context } from "mocha";
import { createPool } from "#src/service/hooks/store/postgres/driver.js";
import { skip } from "../skip.js";
import { PROGRAMS } from "./programs.js";

const KEEPER = fileURLToPath(new URL("./keeper.js", import.meta.url));
const START_MS = 120_000;

/** Process of the whole test run: mocha's, whose workers run files of tests. */
const runner = process.env.MOCHA_WORKER_ID === undefined ? process.pid : process.ppid;
const folder = join(tmpdir(), `latentkit-postgres-${runner}`);
const SERVER = `postgres://latentkit@localhost/postgres?host=${folder}`;

let schemas = 0;

/** A name that no other test of the run uses. */
export const newSchema = (): string => {
  schemas += 1;
  return `test_${process.pid}_${schemas}`;
};

/**
 * Starts PostgreSQL before the tests of the block, once for the whole test run, and skips them where it is not
 * installed. Returns its address, of a database for all; each test takes a schema of its own.
 */
export function postgres(): string {
  before(async function () {
    if (PROGRAMS === undefined)
      skip(this as Context, "PostgreSQL 15 is not installed (Debian: apt-get install postgresql)");
    await started();
  });
  return SERVER;
}

/** Creates an empty database and returns its address. Call it in a test of a block that called `postgres`. */
export async function newDatabase(): Promise<string> {
  const name = newSchema();
  const pool = createPool({ connectionString: SERVER });
  try {
    await pool.query(`CREATE DATABASE ${name}`);
  } finally {
    await pool.end();
  }
  return SERVER.replace("/postgres?", `/${name}?`);
}

async function started(): Promise<void> {
  try {
    // who makes the folder's lock starts the cluster
    mkdirSync(`${folder}.lock`);
    spawn(process.execPath, [KEEPER, folder, String(runner)], { detached: true, stdio: "ignore" }).unref();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  for (const end = Date.now() + START_MS; !existsSync(join(folder, "ready")); await sleep(20)) {
    const failure = join(folder, "failed");
    if (existsSync(failure)) throw new Error(`PostgreSQL does not start: ${readFileSync(failure, "utf8")}`);
    if (Date.now() > end) throw new Error(`PostgreSQL did not start within ${START_MS} ms`);
  }
}
