import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { LatentkitError } from "latentkit";
import { HookError } from "#src/service/hooks/hook-error.js";
import { loadSqliteDriver } from "#src/service/hooks/store/sqlite/driver.js";
import { createSqliteStore } from "#src/service/hooks/store/sqlite/sqlite-store.js";
import type { NewRun } from "#src/service/hooks/store/store.js";
import { temporaryFolder } from "../../../../../helpers/folders.js";
import { wakeLimits } from "../../../../../helpers/hooks/backlog.js";
import { startNext } from "../../../../../helpers/hooks/claims.js";
import { faultyDriver } from "../../../../../helpers/hooks/faulty-driver.js";
import { newRun as runOf } from "../../../../../helpers/hooks/new-run.js";

const HOLDER = fileURLToPath(new URL("../../../../../helpers/hooks/hold-store.js", import.meta.url));

const newRun = (id: string, extra: Parameters<typeof runOf>[1] = {}): NewRun =>
  runOf(id, { createdMark: 1000, compose: () => "message", ...extra });
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

  it("a good ping writes a page, one after a failure as much as a start", async () => {
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

  it("is refused while another process uses it", async () => {
    const child = await holder();
    assert.throws(() => createSqliteStore(file()), isRefusal("config.invalid", /in use by another process/));
    assert.deepEqual([child.exitCode, child.signalCode], [null, null]);
  });

  it("opens after its process was killed, with all commits", async () => {
    const child = await holder();
    child.kill("SIGKILL");
    await once(child, "exit");
    const store = createSqliteStore(file());
    assert.equal((await store.getRun("r1"))?.message, "from the other process");
    await store.close();
  });

  it("is refused to a second store of the process; the first is unharmed", async () => {
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

  it("only its owner can read it and its side files", async () => {
    const store = createSqliteStore(file());
    await store.createRun(newRun("r1"));
    for (const name of readdirSync(folder())) {
      assert.equal(statSync(join(folder(), name)).mode & 0o777, 0o600, name);
    }
    assert.ok(existsSync(`${file()}-wal`));
    await store.close();
    chmodSync(file(), 0o644);
    const opened = createSqliteStore(file());
    for (const name of readdirSync(folder())) assert.equal(statSync(join(folder(), name)).mode & 0o777, 0o600, name);
    await opened.close();
  });

  it("that is no store is refused and left unchanged", () => {
    writeFileSync(file(), "not a database, but long enough to look like one ".repeat(100));
    const before = readFileSync(file());
    const modeOf = (path: string) => statSync(path).mode & 0o777;
    chmodSync(file(), 0o644);
    assert.throws(() => createSqliteStore(file()), isRefusal("file.read-failed", /not a database/));
    assert.deepEqual([readFileSync(file()), modeOf(file())], [before, 0o644]);
    const other = join(folder(), "other.db");
    const foreign = loadSqliteDriver().open(other);
    foreign.exec("CREATE TABLE notes (text TEXT)");
    foreign.close();
    const bytes = readFileSync(other);
    chmodSync(other, 0o644);
    assert.throws(() => createSqliteStore(other), isRefusal("config.invalid", /another program/));
    assert.deepEqual([readFileSync(other), modeOf(other)], [bytes, 0o644]);
    chmodSync(folder(), 0o755);
    const sentence = /^Store .*: expected a file, received a folder\.$/;
    assert.throws(() => createSqliteStore(folder()), isRefusal("config.invalid", sentence));
    assert.equal(modeOf(folder()), 0o755);
    const ofDevice = modeOf("/dev/null");
    assert.throws(() => createSqliteStore("/dev/null"), isRefusal("config.invalid", /received something else/));
    assert.equal(modeOf("/dev/null"), ofDevice);
  });

  it("of another version is refused and left unchanged", async () => {
    await createSqliteStore(file()).close();
    for (const version of [0, 99]) {
      const database = loadSqliteDriver().open(file());
      database.exec(`PRAGMA user_version = ${version}`);
      database.close();
      const bytes = readFileSync(file());
      const sentence = new RegExp(
        `store\\.db has version ${version}, but this latentkit expects version 1: use another file`,
      );
      assert.throws(() => createSqliteStore(file()), isRefusal("config.invalid", sentence));
      assert.deepEqual(readFileSync(file()), bytes);
    }
  });

  it("in a missing folder is refused", () => {
    const missing = join(folder(), "missing", "store.db");
    assert.throws(() => createSqliteStore(missing), isRefusal("file.read-failed", /Cannot open the store file/));
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

  it("use an index for filtered lists, without sorting", async () => {
    const driver = faultyDriver();
    const store = createSqliteStore(join(folder(), "store.db"), { driver });
    await store.createRun(newRun("r1"));
    for (const [filter, index] of [
      [{ state: "queued" }, /INDEX runs_state /],
      [{ sessionKey: "hook:a" }, /INDEX runs_session /],
      [{ sessionKey: "hook:a", state: "queued" }, /INDEX runs_session_state /],
      [{ tag: "a" }, /SEARCH tags USING PRIMARY KEY \(tag=\?/],
      [{ tag: "a", sessionKey: "hook:a", state: "queued" }, /SEARCH tags USING PRIMARY KEY \(tag=\?/],
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

  it("full disk: 503, nothing stored, recovers with room", async () => {
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

  it("read-only file: 503, recovers", async () => {
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

  it("a transaction is all or nothing, whichever statement fails", async () => {
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
      const reply = await store.findReply("k", 0);
      const pending = await store.pendingSessions();
      if (!(result instanceof Error)) {
        assert.ok(failing > 6, `${failing} statements`);
        assert.deepEqual([row?.id, reply === null, pending], ["r1", false, []]);
        await store.close();
        break;
      }
      assert.ok(isUnavailable(result), String(result));
      assert.deepEqual([row, reply, pending], [null, null, ["hook:a"]], `statement ${failing}`);
      assert.equal((await store.createRun(newRun("r2"))).kind, "created");
      await store.close();
    }
  });

  it("begins no transaction within one that could not be rolled back", async () => {
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

  it("syncs commits that clients learn of, not those of events", async () => {
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
    await startNext(store, "r1", 1);
    await store.append("r1", { ...nothing, events: [event] }, keep);
    const ending = { from: ["running"], to: "succeeded", finishedAt: 1, endedMark: 1, error: null } as const;
    await store.endRun("r1", { ...ending, terminal: { event: "done", data: "{}" } }, nothing, keep);
    assert.deepEqual(modes, ["FULL", "FULL", "NORMAL", "NORMAL", "FULL"]);
    await store.close();
  });

  it("closed store: 503; close can be repeated", async () => {
    const store = createSqliteStore(file());
    await store.close();
    await store.close();
    await assert.rejects(store.getRun("r1"), isUnavailable);
  });

  it("damaged file: 503, never a run that does not exist", async () => {
    const store = createSqliteStore(file());
    for (let i = 0; i < 200; i++) await store.createRun({ ...newRun(`r${i}`), compose: () => "x".repeat(500) });
    await store.close();
    const bytes = readFileSync(file());
    const database = loadSqliteDriver().open(file());
    const roots = database.prepare("SELECT rootpage FROM sqlite_schema WHERE rootpage > 0").all();
    database.close();
    // the schema is still readable
    for (const { rootpage } of roots) bytes.fill(0xa5, (Number(rootpage) - 1) * 4096, Number(rootpage) * 4096);
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

  it("fails on damaged pages that were never read", async () => {
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

  it("fails while an earlier failure persists", async () => {
    const driver = faultyDriver();
    const store = createSqliteStore(file(), { driver });
    await store.createRun(newRun("r1"));
    await startNext(store, "r1", 1);
    const malformed = (pattern: RegExp) => (sql: string) => {
      if (pattern.test(sql)) throw new Error("database disk image is malformed");
    };
    for (const [pattern, work] of [
      [/SELECT id, event, data FROM events/, () => store.readEvents("r1", 0, 9, 999)],
      [
        /DELETE FROM replies/,
        () => store.sweep({ endedBefore: 0, maxEndedRuns: 9, maxEndedDeliveries: 9, nowMark: 0, budget: 9 }),
      ],
      [/^COMMIT/, () => store.release("r1", 1)],
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

  it("ignores a failure whose row was stored later", async () => {
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
