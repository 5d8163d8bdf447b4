import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { root } from "../helpers/folders.js";

describe("docs/adding.md", () => {
  // scripts/check-adding.mjs does the section of an operation too, which compiles C++
  it("adds a node word by word, and each guard fails without its file", function () {
    this.timeout(120_000);
    const program = [process.execPath, "scripts/check-adding.mjs", "A node"] as const;
    const { status, stderr } = spawnSync(program[0], program.slice(1), { cwd: root, encoding: "utf8" });
    assert.equal(status, 0, stderr);
    assert.equal([...stderr.matchAll(/ fails without /g)].length, 4, stderr);
  });
});
