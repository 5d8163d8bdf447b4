import assert from "node:assert/strict";
import { join } from "node:path";
import { lazy } from "#src/base/lazy.js";
import { temporaryFolder } from "../../helpers/folders.js";
import { loadedFiles } from "../../helpers/process/loaded-files.js";

/** Packages that a program has loaded once it has run. */
function packagesOf(program: string, list: string): string[] {
  const files = loadedFiles(program, list).join("\n");
  return [...new Set([...files.matchAll(/node_modules\/((?:@[^/]+\/)?[^/]+)\//g)].map(([, name]) => name!))];
}

describe("packages", () => {
  const folder = temporaryFolder();
  const list = () => join(folder(), "list");

  it("are not loaded by an import of latentkit, its hooks or its service @long", () => {
    for (const name of ["latentkit", "latentkit/hooks", "latentkit/service"])
      assert.deepEqual(packagesOf(`await import("${name}");`, list()), [], name);
    assert.deepEqual(packagesOf('await import("zod");', list()), ["zod"]);
  });

  it("are loaded by a hook service, but for those that it may do without", () => {
    const program = `
      const { createHookService } = await import("latentkit/hooks");
      const logger = { debug() {}, info() {}, warn() {}, error() {} };
      createHookService({ agent: async () => ({ response: "" }), config: {}, logger });
    `;
    const names = packagesOf(program, list());
    assert.deepEqual(
      ["express", "zod", "prom-client"].filter((name) => !names.includes(name)),
      [],
    );
    assert.deepEqual(
      ["pino", "koffi", "better-sqlite3"].filter((name) => names.includes(name)),
      [],
    );
  });
});

describe("lazy", () => {
  it("makes its value once, at the first call", () => {
    let calls = 0;
    const value = lazy(() => ({ calls: ++calls }));
    assert.equal(calls, 0);
    assert.equal(value(), value());
    assert.equal(calls, 1);
  });
});
