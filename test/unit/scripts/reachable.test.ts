import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../helpers/folders.js";

/** Places that start scripts: people by npm, the build, the nightly run, tests and other scripts. */
const STARTERS = ["package.json", "CMakeLists.txt", ".ci", ".github", "scripts", "test", "bench"];

/** Files below a path, itself where it is one. */
function filesOf(path: string): string[] {
  try {
    const names = readdirSync(join(root, path), { recursive: true, encoding: "utf8", withFileTypes: true });
    return names.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath ?? entry.path, entry.name));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    return [join(root, path)];
  }
}

describe("scripts", () => {
  it("each is run by npm, the build, a test or another script", () => {
    const texts = STARTERS.flatMap(filesOf)
      .filter((file) => /\.(?:json|mjs|cjs|ts|yml|txt)$|[\\/]run$/.test(file))
      // a comment says how to call it, and starts nothing
      .map((file) => [file, readFileSync(file, "utf8").replace(/^ *(?:\/\/|#|\*).*$/gm, "")] as const);
    const scripts = readdirSync(join(root, "scripts")).filter((name) => name.endsWith(".mjs"));
    const idle = scripts.filter(
      (script) => !texts.some(([file, text]) => !file.endsWith(join("scripts", script)) && text.includes(script)),
    );
    assert.deepEqual(idle, []);
  });
});
