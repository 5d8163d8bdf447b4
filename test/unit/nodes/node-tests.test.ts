import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { registry } from "latentkit";
import { filesIn, root } from "../../helpers/folders.js";
import { goldenJson } from "../../helpers/tensor/golden.js";

const nodes = filesIn(join(root, "src/nodes"))
  .filter((file) => file.includes("/") && file.endsWith(".ts") && !file.endsWith("index.ts"))
  .map((file) => file.replace(/\.ts$/, ""));
const golden = new Set(goldenJson<{ cases: { node: string }[] }>("core_nodes").cases.map(({ node }) => node));

/** Registry keys that a module defines. */
async function keysOf(path: string): Promise<string[]> {
  const exports = (await import(`#src/nodes/${path}.js`)) as Record<string, unknown>;
  return Object.values(exports).flatMap((value) => {
    const { key } = (value ?? {}) as { key?: unknown };
    return typeof key === "string" && registry.get(key) === value ? [key] : [];
  });
}

describe("files of nodes", () => {
  it("define one node each, which golden cases or a test of the same name run", async () => {
    const keys: string[] = [];
    for (const path of nodes) {
      const own = await keysOf(path);
      if (own.length === 0) continue;
      assert.equal(own.length, 1, path);
      keys.push(...own);
      if (golden.has(own[0]!)) continue;
      const file = join(root, "test/unit/nodes", `${path}.test.ts`);
      assert.ok(existsSync(file), `no test/unit/nodes/${path}.test.ts for ${own[0]}`);
      assert.ok(
        readFileSync(file, "utf8").includes(`"${own[0]}"`),
        `test/unit/nodes/${path}.test.ts has no "${own[0]}"`,
      );
    }
    assert.deepEqual(keys.sort(), [...registry.keys()].sort());
  });
});
