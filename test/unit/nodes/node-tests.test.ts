import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { registry } from "latentkit";
import { filesIn, root } from "../../helpers/folders.js";
import { goldenJson } from "../../helpers/tensor/golden.js";

const files = filesIn(join(root, "src/nodes"))
  .filter((file) => file.includes("/") && !file.endsWith("index.ts"))
  .map((file) => file.replace(/\.ts$/, ""));
const golden = new Set(goldenJson<{ cases: { node: string }[] }>("core_nodes").cases.map(({ node }) => node));

/** Registry keys of the nodes that a module exports, alone or in a list. */
async function keysOf(path: string): Promise<string[]> {
  const exports = Object.values((await import(`#src/nodes/${path}.js`)) as Record<string, unknown>);
  return exports.flat().flatMap((value) => {
    const { key } = (value ?? {}) as { key?: unknown };
    return typeof key === "string" && registry.get(key) === value ? [key] : [];
  });
}

describe("files of nodes", () => {
  it("hold every node once, and golden cases or the test of the same path run it", async () => {
    const keys: string[] = [];
    for (const path of files) {
      const own = await keysOf(path);
      keys.push(...own);
      const test = join(root, "test/unit/nodes", `${path}.test.ts`);
      const tested = existsSync(test) ? readFileSync(test, "utf8") : "";
      for (const key of own.filter((key) => !golden.has(key)))
        assert.ok(tested.includes(`"${key}"`), `test/unit/nodes/${path}.test.ts has no "${key}"`);
    }
    assert.deepEqual(keys.sort(), [...registry.keys()].sort());
  });
});
