import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { LatentkitError } from "latentkit";
import { HookError } from "#src/service/hooks/hook-error.js";
import { createSqliteStore } from "#src/service/hooks/store/sqlite.js";
import { loadSqliteDriver } from "#src/service/hooks/store/sqlite-driver.js";
import { migrate } from "#src/service/hooks/store/sqlite-schema.js";
import type { NewRun } from "#src/service/hooks/store/store.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { wakeLimits } from "../../../../helpers/hooks/backlog.js";
import { faultyDriver } from "../../../../helpers/hooks/faulty-driver.js";

const HOLDER = fileURLToPath(new URL("../../../../helpers/hooks/hold-store.js", import.meta.url));

const newRun = (id: string): NewRun => ({
  ...{ id, sessionKey: "hook:a", origin: "agent", name: null, timeoutSeconds: 600, createdAt: 1000 },
  ...{ createdMark: 1000, maxWakeBytes: 1e6 },
  compose: () => "message",
});
const isUnavailable = (error: unknown) =>
  error instanceof HookError && error.status === 503 && error.code === "internal" && error.cause !== undefined;
const isRefusal = (code: string, pattern: RegExp) => (error: unknown) =>
  error instanceof LatentkitError && error.code === code && pattern.test(error.message);

describe("sqlite store file", () => {
  const folder = temporaryFolder();
  const file = () => join(folder(), "store.db");
  const children: ChildProcess[] = [];
  afterEach(() => {
    for (const child of children.splice(0)) child.kill("SIGKILL");
  });
  const holder = async (): Promise<ChildProcess> => {
    const child = spawn(process.execPath, [HOLDER, file()], { stdio: ["ignore", "pipe", "inherit"] });
    children.push(child);
    await once(child.stdout!, "data");
    return child;
  };

  it("grows by pages where a ping finds it well, and by no less than a start after a failure", async () => {
    const driver = faultyDriver();
    const store = createSqliteStore(file(), { driver });
    const grownBy = async (work: () => Promise<unknown>) => {
      const before = statSync(`${file()}-wal`).size;
      await work();
      return statSync(`${file()}-wal`).size - before;
    };
    for (let i = 0; i < 5; i++) {
      const key = { scope: `k${i}`, payloadHash: "hash", nowMark: 0, expiresMark: 1 };
      const started = await grownBy(() => store.createRun(newRun(`r${i}`), key));
      const fail = () => {
        throw new Error("database or disk is full");
      };
      driver.before = fail;
      await assert.rejects(store.createRun(newRun("full")), isUnavailable);
      driver.before = () => undefined;
      assert.ok(started > 0 && (await grownBy(() => store.ping())) >= started, `a start writes ${started} bytes`);
      await store.ping();
      const pinged = await grownBy(() => store.ping());
      assert.ok(pinged > 0 && pinged <= 3 * 4200, `a ping writes ${pinged} bytes`);
    }
    assert.equal((await store.listRuns(null, 99)).length, 5, "a ping leaves nothing behind");
    await store.close();
  });

  it("is refused while another process holds it", async () => {
    await holder();
    assert.throws(() => createSqliteStore(file()), isRefusal("config.invalid", /in use by another process/));
  });

  it("is taken over when its process was killed, with what it had committed", async () => {
    const child = await holder();
    child.kill("SIGKILL");
    await once(child, "exit");
    const store = createSqliteStore(file());
    assert.equal((await store.getRun("r1"))?.message, "from the other process");
    await store.close();
  });

  it("is refused to a second store of the same process, which does not harm the first", async () => {
    const store = createSqliteStore(file());
    assert.throws(() => createSqliteStore(file()), isRefusal("config.invalid", /in use/));
    await store.createRun(newRun("r1"));
    const child = spawn(process.execPath, [HOLDER, file()], { stdio: ["ignore", "ignore", "pipe"] });
    children.push(child);
    const [code] = await once(child, "exit");
    assert.equal(code, 1);
    await store.close();
    await createSqliteStore(file()).close();
  });

  it("is readable by its owner only, its side files too", async () => {
    const store = createSqliteStore(file());
    await store.createRun(newRun("r1"));
    for (const name of readdirSync(folder())) {
      assert.equal(statSync(join(folder(), name)).mode & 0o777, 0o600, name);
    }
    assert.ok(existsSync(`${file()}-wal`));
    await store.close();
    chmodSync(file(), 0o644);
    await createSqliteStore(file()).close();
    assert.equal(statSync(file()).mode & 0o777, 0o600);
  });

  it("is refused where it is no database, or none of ours, and left as it was", () => {
    writeFileSync(file(), "not a database, but long enough to look like one ".repeat(100));
    const before = readFileSync(file());
    assert.throws(() => createSqliteStore(file()), isRefusal("file.read-failed", /not a database/));
    assert.deepEqual(readFileSync(file()), before);
    const other = join(folder(), "other.db");
    const foreign = loadSqliteDriver().open(other);
    foreign.exec("CREATE TABLE notes (text TEXT)");
    foreign.close();
    const bytes = readFileSync(other);
    assert.throws(() => createSqliteStore(other), isRefusal("config.invalid", /another program/));
    assert.deepEqual(readFileSync(other), bytes);
  });

  it("is refused where a newer version wrote it", async () => {
    await createSqliteStore(file()).close();
    const database = loadSqliteDriver().open(file());
    database.exec("PRAGMA user_version = 99");
    database.close();
    assert.throws(() => createSqliteStore(file()), isRefusal("config.invalid", /schema 99/));
  });

  it("is refused in a folder that does not exist", () => {
    const missing = join(folder(), "missing", "store.db");
    assert.throws(() => createSqliteStore(missing), isRefusal("file.read-failed", /cannot be opened/));
  });
});

describe("sqlite store file of an older version", () => {
  const folder = temporaryFolder();

  it("keeps its runs, messages and pending wakes, which count against the limits", async () => {
    const path = join(folder(), "store.db");
    const old = loadSqliteDriver().open(path);
    migrate(old, 0, 2);
    old.exec(`
      INSERT INTO sessions (key) VALUES ('hook:a'), ('hook:b');
      INSERT INTO runs (id, session, origin, name, message, state, timeout_seconds, created_at)
        VALUES ('r1', 1, 'agent', NULL, '"from before"', 'queued', 600, 1000);
      INSERT INTO wakes (session, text, run) VALUES (1, '"taken"', 1), (1, '"ü"', NULL), (2, '"two"', NULL), (1, '"3"', NULL);
    `);
    old.close();
    const store = createSqliteStore(path);
    assert.equal((await store.getRun("r1"))?.message, "from before");
    assert.deepEqual(await store.pendingSessions(), ["hook:a", "hook:b"]);
    // ü and its quotes are four bytes, 3 three, two five: twelve, and five of the new one
    const add = (bytes: number, all: number) =>
      store.addWake({ sessionKey: "hook:a", text: "new", limits: wakeLimits(9, { bytes, all: { bytes: all } }) });
    assert.deepEqual(await add(11, 17), { kind: "full", whose: "session" });
    assert.deepEqual(await add(12, 16), { kind: "full", whose: "service" });
    assert.equal((await add(12, 17)).kind, "queued");
    await store.createRun({ ...newRun("r2"), compose: (pending) => pending.join("|") });
    assert.equal((await store.getRun("r2"))?.message, "ü|3|new");
    await store.close();
  });
});

describe("queries of a SQLite store", () => {
  const folder = temporaryFolder();

  it("read no message for a list or a status", async () => {
    const driver = faultyDriver();
    const store = createSqliteStore(join(folder(), "store.db"), { driver });
    await store.createRun({ ...newRun("r1"), compose: () => "x".repeat(1_000_000) });
    driver.before = (sql) => assert.doesNotMatch(sql, /message/);
    assert.equal((await store.listRuns(null, 9)).length, 1);
    assert.equal((await store.listRuns(null, 9, { state: "queued", sessionKey: "hook:a" })).length, 1);
    assert.ok(await store.getStatus("r1", 9));
    assert.ok(await store.getSummary("r1"));
    driver.before = () => undefined;
    await store.close();
  });

  it("find the runs of a filter by an index, in the order of the list", async () => {
    const driver = faultyDriver();
    const store = createSqliteStore(join(folder(), "store.db"), { driver });
    await store.createRun(newRun("r1"));
    for (const [filter, index] of [
      [{ state: "queued" }, /INDEX runs_state /],
      [{ sessionKey: "hook:a" }, /INDEX runs_session /],
      [{ sessionKey: "hook:a", state: "queued" }, /INDEX runs_session_state /],
    ] as const) {
      for (const before of [null, 99]) {
        let last = "";
        driver.before = (sql) => {
          last = sql;
        };
        await store.listRuns(before, 9, filter);
        driver.before = () => undefined;
        const holes = Array.from(last.matchAll(/\?/g), () => 1);
        const plan = JSON.stringify(driver.database.prepare(`EXPLAIN QUERY PLAN ${last}`).all(...holes));
        assert.match(plan, index);
        assert.doesNotMatch(plan, /TEMP B-TREE|SCAN/);
      }
    }
    await store.close();
  });
});

describe("sqlite store faults", () => {
  const folder = temporaryFolder();
  const file = () => join(folder(), "store.db");

  it("answers 503 on a full disk, stores nothing, and goes on when there is room", async () => {
    const driver = faultyDriver();
    const store = createSqliteStore(file(), { driver });
    await store.createRun(newRun("before"));
    const pages = Number(Object.values(driver.database.prepare("PRAGMA page_count").get() ?? {})[0]);
    driver.database.exec(`PRAGMA max_page_count = ${pages + 2}`);
    const big = { ...newRun("big"), compose: () => "x".repeat(100_000) };
    await assert.rejects(store.createRun(big), isUnavailable);
    assert.equal(await store.getRun("big"), null);
    assert.ok(await store.getRun("before"));
    driver.database.exec("PRAGMA max_page_count = 100000");
    assert.equal((await store.createRun(big)).kind, "created");
    await store.close();
  });

  it("answers 503 where the file is read-only, and recovers", async () => {
    const driver = faultyDriver();
    const store = createSqliteStore(file(), { driver });
    driver.database.exec("PRAGMA query_only = ON");
    await assert.rejects(store.createRun(newRun("r1")), isUnavailable);
    await assert.rejects(store.ping(), isUnavailable);
    assert.equal(await store.getRun("r1"), null);
    driver.database.exec("PRAGMA query_only = OFF");
    await store.ping();
    assert.equal((await store.createRun(newRun("r1"))).kind, "created");
    await store.close();
  });

  it("does all of a transaction or nothing, whichever statement fails", async () => {
    const key = { scope: "k", payloadHash: "h", nowMark: 0, expiresMark: 9 };
    for (let failing = 1; ; failing++) {
      const driver = faultyDriver();
      const path = join(folder(), `store-${failing}.db`);
      const store = createSqliteStore(path, { driver });
      await store.addWake({ sessionKey: "hook:a", text: "one", limits: wakeLimits(9) });
      let statements = 0;
      driver.before = (sql) => {
        if (sql === "ROLLBACK") return;
        statements += 1;
        if (statements === failing) throw new Error("disk I/O error");
      };
      const result = await store.createRun(newRun("r1"), key).catch((error: unknown) => error);
      driver.before = () => undefined;
      const row = await store.getRun("r1");
      const answer = await store.findAnswer("k", 0);
      const pending = await store.pendingSessions();
      if (!(result instanceof Error)) {
        assert.ok(failing > 6, `${failing} statements`);
        assert.deepEqual([row?.id, answer === null, pending], ["r1", false, []]);
        await store.close();
        break;
      }
      assert.ok(isUnavailable(result), String(result));
      assert.deepEqual([row, answer, pending], [null, null, ["hook:a"]], `statement ${failing}`);
      assert.equal((await store.createRun(newRun("r2"))).kind, "created");
      await store.close();
    }
  });

  it("lets no transaction run into one that could not be rolled back", async () => {
    const driver = faultyDriver();
    const store = createSqliteStore(file(), { driver });
    let isDown = true;
    driver.before = (sql) => {
      if (isDown && /COMMIT|ROLLBACK/.test(sql)) throw new Error("disk I/O error");
    };
    await assert.rejects(store.createRun(newRun("r1")), isUnavailable);
    await assert.rejects(store.createRun(newRun("r2")), isUnavailable);
    await assert.rejects(store.getRun("r1"), isUnavailable);
    isDown = false;
    assert.equal(await store.getRun("r1"), null);
    assert.equal((await store.createRun(newRun("r2"))).kind, "created");
    await store.close();
  });

  it("commits what clients are told with a sync to the disk, events without", async () => {
    const driver = faultyDriver();
    const store = createSqliteStore(file(), { driver });
    const modes: string[] = [];
    let mode = "";
    driver.before = (sql) => {
      mode = /synchronous = (\w+)/.exec(sql)?.[1] ?? mode;
      if (sql === "COMMIT") modes.push(mode);
    };
    const nothing = { skip: 0, events: [], files: [] };
    const keep = { events: 10, bytes: 1000 };
    const event = { event: "delta", data: "{}" };
    await store.createRun(newRun("r1"));
    await store.addWake({ sessionKey: "hook:a", text: "x", limits: wakeLimits(9) });
    await store.startRun("r1", 1, event);
    await store.append("r1", { ...nothing, events: [event] }, keep);
    const ending = { from: ["running"], to: "succeeded", finishedAt: 1, endedMark: 1, error: null } as const;
    await store.endRun("r1", { ...ending, terminal: { event: "done", data: "{}" } }, nothing, keep);
    assert.deepEqual(modes, ["FULL", "FULL", "NORMAL", "NORMAL", "FULL"]);
    await store.close();
  });

  it("answers 503 after its close, and closes twice", async () => {
    const store = createSqliteStore(file());
    await store.close();
    await store.close();
    await assert.rejects(store.getRun("r1"), isUnavailable);
  });

  it("answers 503 where the file is damaged, and never with a run that is not there", async () => {
    const store = createSqliteStore(file());
    for (let i = 0; i < 200; i++) await store.createRun({ ...newRun(`r${i}`), compose: () => "x".repeat(500) });
    await store.close();
    const bytes = readFileSync(file());
    // all pages but the first two: the schema is still readable
    bytes.fill(0xa5, 8192);
    writeFileSync(file(), bytes);
    const damaged = createSqliteStore(file());
    await assert.rejects(damaged.createRun(newRun("new")), isUnavailable);
    await assert.rejects(damaged.getRun("r1"), isUnavailable);
    await damaged.close();
  });
});

describe("ping of a SQLite store", () => {
  const folder = temporaryFolder();
  const file = () => join(folder(), "store.db");

  it("fails on damaged pages that nothing has read yet", async () => {
    const store = createSqliteStore(file());
    for (let i = 0; i < 200; i++) await store.createRun({ ...newRun(`r${i}`), compose: () => "x".repeat(500) });
    await store.close();
    const whole = readFileSync(file());
    const database = loadSqliteDriver().open(file());
    const roots = database
      .prepare("SELECT name, rootpage FROM sqlite_schema WHERE tbl_name IN ('runs', 'messages')")
      .all();
    const pageBytes = Number(database.prepare("PRAGMA page_size").get()?.page_size);
    database.close();
    assert.ok(roots.length > 5);
    for (const { name, rootpage } of roots) {
      const bytes = Buffer.from(whole);
      bytes.fill(0xa5, (Number(rootpage) - 1) * pageBytes, Number(rootpage) * pageBytes);
      writeFileSync(file(), bytes);
      const damaged = createSqliteStore(file());
      await assert.rejects(damaged.ping(), isUnavailable, String(name));
      await damaged.close();
    }
  });

  it("fails while what failed before still fails, and passes when it does not", async () => {
    const driver = faultyDriver();
    const store = createSqliteStore(file(), { driver });
    await store.createRun(newRun("r1"));
    await store.startRun("r1", 1, { event: "status", data: "{}" });
    const malformed = (pattern: RegExp) => (sql: string) => {
      if (pattern.test(sql)) throw new Error("database disk image is malformed");
    };
    for (const [pattern, work] of [
      [/SELECT id, event, data FROM events/, () => store.readEvents("r1", 0, 9, 999)],
      [/DELETE FROM answers/, () => store.sweep({ endedBefore: 0, keepRuns: 9, nowMark: 0, budget: 9 })],
      [/^COMMIT/, () => store.requeueRun("r1")],
    ] as const) {
      await store.ping();
      driver.before = malformed(pattern);
      await assert.rejects(work(), isUnavailable);
      for (let i = 0; i < 2; i++) await assert.rejects(store.ping(), isUnavailable, String(pattern));
      driver.before = () => undefined;
      await store.ping();
    }
    assert.equal((await store.getRun("r1"))?.state, "running");
    await store.close();
  });

  it("takes a row that was stored after all for no failure", async () => {
    const driver = faultyDriver();
    const store = createSqliteStore(file(), { driver });
    driver.before = (sql) => {
      if (/INSERT INTO sessions/.test(sql)) throw new Error("disk I/O error");
    };
    await assert.rejects(store.createRun(newRun("r1")), isUnavailable);
    driver.before = () => undefined;
    await store.createRun(newRun("r1"));
    await store.ping();
    await assert.rejects(store.createRun(newRun("r1")), isUnavailable);
    await store.ping();
    await store.close();
  });
});

describe("loadSqliteDriver", () => {
  class Working {
    close(): void {}
  }
  class Uncompiled {
    constructor() {
      throw new Error("Could not locate the bindings file. Tried:\n → a\n → b");
    }
  }
  const loader = (modules: Record<string, unknown>) => (name: string) => {
    if (name in modules) return modules[name];
    throw new Error(`No such built-in module: ${name}`);
  };

  it("takes node:sqlite where this Node has it", () => {
    const modules = { "node:sqlite": { DatabaseSync: Working }, "better-sqlite3": Working };
    assert.equal(loadSqliteDriver(loader(modules)).name, "node:sqlite");
  });

  it("takes better-sqlite3 elsewhere", () => {
    assert.equal(loadSqliteDriver(loader({ "better-sqlite3": Working })).name, "better-sqlite3");
  });

  it("says what to install where neither loads, or better-sqlite3 was never compiled", () => {
    for (const modules of [{}, { "better-sqlite3": Uncompiled }]) {
      const refusal = isRefusal(
        "config.invalid",
        /npm rebuild better-sqlite3.*npm install better-sqlite3.*Node 22.*store: memory:/,
      );
      assert.throws(() => loadSqliteDriver(loader(modules)), refusal);
    }
  });
});
