import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { loadNative } from "#src/native/load.js";
import { hashesIn, root, temporaryFolder } from "./helpers/folders.js";
import { latentkit } from "./helpers/process/cli.js";

const graph = join(root, "examples/first-light.json");
const expected = JSON.parse(readFileSync(join(root, "test/graphs/expected/first-light.json"), "utf8")) as object;

describe("examples/first-light.json", () => {
  const folder = temporaryFolder();
  const render = async (env: Record<string, string>) => {
    const out = join(folder(), "out");
    const ran = await latentkit(["render", graph, "--out", out, "--targets", "11,18,19,20", "--quiet"], { env });
    assert.equal(ran.code, 0, ran.stderr);
    return hashesIn(out);
  };

  for (const isa of loadNative().isas()) {
    for (const threads of ["1 thread", "2 threads @long", "7 threads"]) {
      it(`writes the recorded bytes with ${isa} and ${threads}`, async () => {
        assert.deepEqual(await render({ LATENTKIT_ISA: isa, LATENTKIT_THREADS: threads[0]! }), expected);
      });
    }
  }

  it("shows in docs/ what it renders", () => {
    const documented = hashesIn(join(root, "docs/first-light"));
    for (const [name, hash] of Object.entries(documented)) {
      assert.equal((expected as Record<string, string>)[`first-light/${name}`], hash, name);
    }
    assert.ok(Object.keys(documented).length > 0);
  });
});
