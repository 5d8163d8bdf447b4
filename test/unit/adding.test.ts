import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../helpers/folders.js";

// scripts/check-adding.mjs applies the blocks, and leaves out one file after the other
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
});
