import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { root, temporaryFolder } from "../../helpers/folders.js";

const FILE = `
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  describe("a part", () => {
    beforeEach(() => pause(20));
    it("passes slowly", () => pause(600));
    it("fails", () => { throw new Error("on purpose"); });
    it.skip("is left out", () => {});
  });`;

describe("scripts/test/reporter", () => {
  const folder = temporaryFolder();

  for (const [mode, options] of [
    ["one after another", []],
    ["in parallel", ["--parallel", "--jobs", "2"]],
  ] as const) {
    it(`counts tests, names failures and adds up the time of each file, ${mode}`, () => {
      const [file, output] = [join(folder(), "a.test.mjs"), join(folder(), "outcome.json")];
      writeFileSync(file, FILE);
      const reporter = ["--reporter", "scripts/test/reporter.cjs", "--reporter-option", `output=${output}`];
      const mocha = [join(root, "node_modules/mocha/bin/mocha.js"), "--no-config", ...reporter, ...options, file];
      const ran = spawnSync(process.execPath, mocha, { cwd: root, encoding: "utf8" });
      assert.equal(ran.status, 1, ran.stderr);
      assert.match(ran.stdout, /1 passing .*\n\s+1 pending\n\s+1 failing\n/);
      const { parts, ...figures } = JSON.parse(readFileSync(output, "utf8"));
      assert.deepEqual(figures, {
        passed: 1,
        skipped: 1,
        failures: [
          { file: relative(join(root, "build/test"), file).replace(/\.test\.js$/, ""), title: "a part fails" },
        ],
      });
      assert.equal(parts.length, 1);
      assert.equal(parts[0].slowest, "passes slowly");
      assert.ok(parts[0].slowestMs >= 500 && parts[0].ms >= parts[0].slowestMs + 30, JSON.stringify(parts));
    });
  }
});
