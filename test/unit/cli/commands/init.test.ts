import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { filesIn, hashesIn, root, temporaryFolder } from "../../../helpers/folders.js";
import { latentkit } from "../../../helpers/process/cli.js";

describe("latentkit init", () => {
  const folder = temporaryFolder();

  it("copies every example of a graph and prints each file", async () => {
    const { code, stdout, stderr } = await latentkit(["init"], { cwd: folder() });
    assert.equal(code, 0, stderr);
    const all = Object.entries(hashesIn(join(root, "examples")));
    const graphs = all.filter(([name]) => !name.startsWith("operations/"));
    assert.ok(graphs.length < all.length);
    assert.deepEqual(hashesIn(join(folder(), "examples")), Object.fromEntries(graphs));
    const printed = stdout.trimEnd().split("\n").sort();
    assert.deepEqual(printed, filesIn(folder()));
    assert.match(stderr, /^Next: npx latentkit render examples\/first-light\.json$/m);
  });

  it("refuses to replace a file, in one sentence, and copies nothing", async () => {
    mkdirSync(join(folder(), "mine"));
    writeFileSync(join(folder(), "mine/hook.json"), "mine");
    const { code, stdout, stderr } = await latentkit(["init", "mine"], { cwd: folder() });
    assert.equal(code, 2);
    assert.equal(stdout, "");
    assert.match(stderr, /^latentkit: init: mine\/hook\.json already exists, so nothing was copied; .*\.\n$/);
    assert.deepEqual(filesIn(folder()), ["mine/hook.json"]);
    assert.equal(readFileSync(join(folder(), "mine/hook.json"), "utf8"), "mine");
  });

  it("names a folder that cannot be written", async () => {
    writeFileSync(join(folder(), "taken"), "");
    const { code, stderr } = await latentkit(["init", "taken"], { cwd: folder() });
    assert.equal(code, 1);
    assert.match(stderr, /^latentkit: init: taken cannot be written \(\w+\)\.\n$/);
  });

  it("leaves the examples reachable by a sub-path of the package", () => {
    const graph = createRequire(import.meta.url).resolve("latentkit/examples/first-light.json");
    assert.equal(graph, join(root, "examples/first-light.json"));
  });
});
