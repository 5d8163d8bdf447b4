import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { registry } from "latentkit";
import { root } from "../../helpers/folders.js";

const folders = readdirSync(join(root, "src/nodes"), { withFileTypes: true }).filter((entry) => entry.isDirectory());
const nodes = folders.flatMap(({ name: folder }) => {
  const files = readdirSync(join(root, "src/nodes", folder)).filter((file) => file.endsWith(".ts"));
  return files.map((file) => join(folder, file.replace(/\.ts$/, "")));
});

/** Registry keys that a module defines. */
async function keysOf(path: string): Promise<string[]> {
  const exports = (await import(`#src/nodes/${path}.js`)) as Record<string, unknown>;
  return Object.values(exports).flatMap((value) => {
    const { key } = (value ?? {}) as { key?: unknown };
    return typeof key === "string" && registry.get(key) === value ? [key] : [];
  });
}

describe("files of nodes", () => {
  it("define one node each, and tests of the same name run it", async () => {
    const keys: string[] = [];
    for (const path of nodes) {
      const own = await keysOf(path);
      if (own.length === 0) continue;
      assert.equal(own.length, 1, path);
      keys.push(...own);
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
