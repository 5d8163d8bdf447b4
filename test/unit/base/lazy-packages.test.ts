import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { lazy } from "#src/base/lazy-packages.js";
import { temporaryFolder } from "../../helpers/folders.js";

/** Packages that a program has loaded, CommonJS and ES modules, once it has run. */
function packagesOf(program: string, list: string): string[] {
  const tell = `appendFileSync(${JSON.stringify(list)}, `;
  const loader = `
    import { appendFileSync } from "node:fs";
    export async function load(url, context, next) { ${tell} url + "\\n"); return next(url, context); }
  `;
  const source = `
    import { appendFileSync } from "node:fs";
    import { createRequire, register } from "node:module";
    register("data:text/javascript," + encodeURIComponent(${JSON.stringify(loader)}));
    await (async () => { ${program} })();
    for (const file of Object.keys(createRequire(import.meta.url).cache)) ${tell} file + "\\n");
  `;
  rmSync(list, { force: true });
  const ran = spawnSync(process.execPath, ["--input-type=module", "-e", source], { encoding: "utf8" });
  assert.equal(ran.status, 0, ran.stderr);
  const names = [...readFileSync(list, "utf8").matchAll(/node_modules\/((?:@[^/]+\/)?[^/]+)\//g)].map(
    ([, name]) => name!,
  );
  return [...new Set(names)];
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
