import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { LatentkitError } from "latentkit";
import { loadSqliteDriver } from "#src/service/hooks/store/sqlite/driver.js";
import { root } from "../../../../../helpers/folders.js";

const isRefusal = (code: string, pattern: RegExp) => (error: unknown) =>
  error instanceof LatentkitError && error.code === code && pattern.test(error.message);

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

  it("prints no warning that Node's own SQLite is experimental", () => {
    const driver = JSON.stringify(join(root, "dist/service/hooks/store/sqlite/driver.js"));
    const program = `import { loadSqliteDriver } from ${driver};
      loadSqliteDriver();
      process.emitWarning("one of the program", "ExperimentalWarning");`;
    const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
      encoding: "utf8",
    });
    assert.equal(status, 0, stderr);
    assert.deepEqual(stderr.match(/\w+Warning: .*/g), ["ExperimentalWarning: one of the program"]);
  });

  it("loads node:sqlite if this Node has it", () => {
    const modules = { "node:sqlite": { DatabaseSync: Working }, "better-sqlite3": Working };
    assert.equal(loadSqliteDriver(loader(modules)).name, "node:sqlite");
  });

  it("loads better-sqlite3 otherwise", () => {
    assert.equal(loadSqliteDriver(loader({ "better-sqlite3": Working })).name, "better-sqlite3");
  });

  it("neither loads: says what to install", () => {
    for (const modules of [{}, { "better-sqlite3": Uncompiled }]) {
      const refusal = isRefusal(
        "config.invalid",
        /npm install better-sqlite3@12.*npm rebuild better-sqlite3.*Node 22.*--store memory:/,
      );
      assert.throws(() => loadSqliteDriver(loader(modules)), refusal);
    }
  });
});
