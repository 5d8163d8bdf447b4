import assert from "node:assert/strict";
import { chmodSync, existsSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../../helpers/folders.js";

interface Script {
  buildNative(options: { folder?: string; force?: boolean }): string;
}

describe("scripts/native-build", () => {
  const folder = temporaryFolder();
  let script: Script;
  const { PATH, CXX } = process.env;
  before(async () => {
    script = (await import(new URL("../../../../scripts/native-build.mjs", import.meta.url).href)) as Script;
  });
  beforeEach(() => {
    process.env.PATH = folder();
    delete process.env.CXX;
  });
  afterEach(() => {
    process.env.PATH = PATH;
    if (CXX !== undefined) process.env.CXX = CXX;
  });

  it("needs no tools if the module is newer than its sources", () => {
    const built = join("build", "Release", "latentkit.node");
    const { atime, mtime } = statSync(built);
    const later = new Date(Date.now() + 60_000);
    try {
      utimesSync(built, later, later);
      assert.ok(script.buildNative({}).endsWith(built));
    } finally {
      utimesSync(built, atime, mtime);
    }
  });

  it("says that CMake is missing, and how to install it", () => {
    assert.throws(
      () => script.buildNative({ folder: join(folder(), "build") }),
      /^Error: CMake was not found: install/,
    );
    assert.equal(existsSync(join(folder(), "build")), false);
  });

  it("says that a compiler is missing, and how to install it", () => {
    writeFileSync(join(folder(), "cmake"), "");
    chmodSync(join(folder(), "cmake"), 0o755);
    assert.throws(
      () => script.buildNative({ folder: join(folder(), "build") }),
      /^Error: A C\+\+ compiler was not found/,
    );
  });
});
