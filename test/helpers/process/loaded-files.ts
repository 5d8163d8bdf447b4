import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";

/** Modules that a program has loaded once it has run, CommonJS and ES modules, by path or URL. `list`: a file for them. */
export function loadedFiles(program: string, list: string): string[] {
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
  return readFileSync(list, "utf8").trimEnd().split("\n");
}
