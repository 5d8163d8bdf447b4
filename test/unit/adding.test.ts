import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../helpers/folders.js";

describe("docs/adding.md", () => {
  it("lists files that exist or that a block creates", () => {
    const page = readFileSync(join(root, "docs/adding.md"), "utf8");
    const files = [...page.matchAll(/^\| `([^`]+)` \|/gm)].map(([, file]) => file!);
    assert.ok(files.length > 30);
    assert.deepEqual(
      files.filter((file) => !existsSync(join(root, file)) && !page.includes(`\`${file}\`, a new file:`)),
      [],
    );
  });

  // scripts/check-adding.mjs does the section of an operation too, which compiles C++
  it("adds a node word by word, and each guard fails without its file", function () {
    this.timeout(120_000);
    const program = [process.execPath, "scripts/check-adding.mjs", "A node"] as const;
    const { status, stderr } = spawnSync(program[0], program.slice(1), { cwd: root, encoding: "utf8" });
    assert.equal(status, 0, stderr);
    assert.equal([...stderr.matchAll(/ fails without /g)].length, 4, stderr);
  });
});
