import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { loadSqliteDriver } from "../../dist/service/hooks/store/sqlite/driver.js";

/** A file of SQLite in a folder, which one process has. */
export class Sqlite {
  #path;

  /** @param {string} folder */
  constructor(folder) {
    this.#path = join(folder, "soak.db");
  }

  lack = undefined;

  get url() {
    return `sqlite:${this.#path}`;
  }

  create() {}

  start() {}

  stop() {}

  /** Rows of a statement on the tables of `latentkit`. @param {string} sql */
  async rows(sql) {
    const database = loadSqliteDriver().open(":memory:");
    try {
      database.exec(`ATTACH DATABASE '${this.#path}' AS latentkit`);
      return database.prepare(sql).all();
    } finally {
      database.close();
    }
  }
}

const INSTALLED = "/usr/lib/postgresql";
/** Debian's user nobody: PostgreSQL refuses to run as root. */
const NOBODY = 65534;

/** A PostgreSQL cluster of its own in a folder, reached by a socket there. */
export class Postgres {
  #folder;
  #version;
  #isRoot = process.getuid?.() === 0;

  /** @param {string} folder */
  constructor(folder) {
    const installed = existsSync(INSTALLED) ? readdirSync(INSTALLED).map(Number) : [];
    this.#version = Math.max(...installed.filter((number) => number >= 15));
    this.#folder = folder;
  }

  /** Why it cannot run here; undefined if it can. */
  get lack() {
    return Number.isFinite(this.#version)
      ? undefined
      : "PostgreSQL 15 is not installed (Debian: apt-get install postgresql)";
  }

  get url() {
    return `postgres://latentkit@localhost/postgres?host=${this.#folder}`;
  }

  create() {
    if (this.#isRoot) {
      chmodSync(this.#folder, 0o755);
      chownSync(this.#folder, NOBODY, NOBODY);
    }
    this.#run("initdb", "-D", this.#data, "-A", "trust", "-U", "latentkit", "--no-locale", "-E", "UTF8");
  }

  start() {
    const settings = `-c listen_addresses='' -k ${this.#folder} -c max_connections=200`;
    const log = join(this.#folder, "log");
    this.#run("pg_ctl", "-D", this.#data, "-w", "-l", log, "-o", settings, "start");
  }

  /** @param {"fast" | "immediate"} mode */
  stop(mode) {
    this.#run("pg_ctl", "-D", this.#data, "-m", mode, "-w", "stop");
  }

  /** Rows of a statement on the tables of `latentkit`. @param {string} sql */
  async rows(sql) {
    const client = new pg.Client({ connectionString: this.url });
    await client.connect();
    try {
      return (await client.query(sql)).rows;
    } finally {
      await client.end();
    }
  }

  get #data() {
    return join(this.#folder, "data");
  }

  /** @param {string[]} args */
  #run(program, ...args) {
    const path = `${INSTALLED}/${this.#version}/bin/${program}`;
    const setpriv = ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups"];
    const [command, ...rest] = this.#isRoot ? [...setpriv, path] : [path];
    execFileSync(command, [...rest, ...args], { cwd: this.#folder, stdio: "ignore" });
  }
}
