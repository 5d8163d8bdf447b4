import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

interface Script {
  checkNode(version: string): void;
  packagesMatch(folder: string): boolean;
  newestChange(paths: string[]): number;
  removeOrphans(sources: string, outputs: string): void;
}

describe("scripts/setup", () => {
  let script: Script;
  let folder: string;
  before(async () => {
    script = (await import(new URL("../../../../scripts/setup.mjs", import.meta.url).href)) as Script;
  });
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "latentkit-setup-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const write = (path: string, text = "") => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  const lock = (path: string, packages: object) => write(path, JSON.stringify({ packages }));

  it("refuses a version of Node that the package does not support", () => {
    for (const version of ["20.19.0", "20.20.2", "22.13.0", "24.0.0", "23.0.0"]) script.checkNode(version);
    for (const version of ["18.20.8", "20.18.3", "21.7.3", "22.12.0"]) {
      assert.throws(() => script.checkNode(version), /^Error: Node 20\.19, 22\.13 or newer is needed, this is /);
    }
  });

  it("sees packages that are missing, of another version, or not for this machine", () => {
    const locked = {
      "": {},
      "node_modules/a": { version: "1.0.0" },
      "node_modules/b": { version: "2.0.0", optional: true },
    };
    lock("package-lock.json", locked);
    assert.equal(script.packagesMatch(folder), false);
    lock("node_modules/.package-lock.json", { "node_modules/a": { version: "1.0.0" } });
    assert.equal(script.packagesMatch(folder), true);
    lock("node_modules/.package-lock.json", { "node_modules/a": { version: "1.0.1" } });
    assert.equal(script.packagesMatch(folder), false);
    lock("node_modules/.package-lock.json", {});
    assert.equal(script.packagesMatch(folder), false);
  });

  it("finds the newest change at any depth", () => {
    write("src/deep/a.ts");
    utimesSync(join(folder, "src/deep/a.ts"), 4e9, 4e9);
    assert.equal(script.newestChange([join(folder, "src"), join(folder, "none")]), 4e12);
    assert.equal(script.newestChange([join(folder, "none")]), 0);
  });

  it("removes outputs whose source is gone, and only those", () => {
    for (const path of ["src/a.ts", "dist/a.js", "dist/a.d.ts", "dist/old/b.js", "dist/c.d.ts"]) write(path);
    script.removeOrphans(join(folder, "src"), join(folder, "dist"));
    assert.deepEqual(readdirSync(join(folder, "dist")).sort(), ["a.d.ts", "a.js", "old"]);
    assert.deepEqual(readdirSync(join(folder, "dist/old")), []);
    // another program builds the page, whose files have hashed names
    write("dist/service/web/page/page/index-12345678.js");
    script.removeOrphans(join(folder, "src"), join(folder, "dist"));
    assert.deepEqual(readdirSync(join(folder, "dist/service/web/page/page")), ["index-12345678.js"]);
  });
});
