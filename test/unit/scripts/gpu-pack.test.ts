import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "../../helpers/folders.js";
import { SUITES } from "../../helpers/process/device-suites.js";

/** A file's imports, and those of what it imports from the tests themselves. */
function packagesOf(file: string, seen: Set<string>): string[] {
  if (seen.has(file)) return [];
  seen.add(file);
  const imports = [...readFileSync(file, "utf8").matchAll(/(?:\bfrom|\bimport) "([^"]+)"/g)].map(([, name]) => name!);
  const own = imports.filter((name) => name.startsWith("."));
  const others = imports.filter((name) => !/^(\.|#|node:|latentkit(\/|$))/.test(name));
  const names = others.map((name) =>
    name
      .split("/")
      .slice(0, name.startsWith("@") ? 2 : 1)
      .join("/"),
  );
  return [...names, ...own.flatMap((name) => packagesOf(join(dirname(file), name), seen))];
}

interface Script {
  readonly TEST_PACKAGES: readonly string[];
  closure(
    packages: Record<string, { dependencies?: object; optionalDependencies?: object }>,
    names: readonly string[],
    isInstalled: (path: string) => boolean,
  ): string[];
}

describe("scripts/gpu-pack", () => {
  let closure: Script["closure"];
  let TEST_PACKAGES: Script["TEST_PACKAGES"];
  before(async () => {
    ({ closure, TEST_PACKAGES } = (await import(
      new URL("../../../../scripts/gpu-pack.mjs", import.meta.url).href
    )) as Script);
  });

  const packages = {
    "": {},
    "node_modules/a": { dependencies: { b: "1", c: "1" } },
    "node_modules/a/node_modules/b": { dependencies: { d: "1" } },
    "node_modules/b": {},
    "node_modules/c": { dependencies: { b: "2", a: "1" }, optionalDependencies: { linux: "1", windows: "1" } },
    "node_modules/d": {},
    "node_modules/linux": {},
    "node_modules/windows": {},
    "node_modules/other": {},
  };

  it("takes what the packages need where Node finds it, once, in order", () => {
    const installed = (path: string) => !path.endsWith("windows");
    assert.deepEqual(closure(packages, ["a"], installed), [
      "node_modules/a",
      "node_modules/a/node_modules/b",
      "node_modules/b",
      "node_modules/c",
      "node_modules/d",
      "node_modules/linux",
    ]);
  });

  it("takes koffi, without which no card is found", () => assert.ok(TEST_PACKAGES.includes("koffi")));

  it("takes all that the tests for a card import", () => {
    const tests = join(root, "build/test");
    const glob = (pattern: string) =>
      new RegExp(
        `^${pattern
          .replaceAll(".", "\\.")
          .replaceAll("**/", "(.+/)?")
          .replaceAll(/(?<!\.)\*/g, "[^/]*")}$`,
      );
    const files = readdirSync(tests, { recursive: true, encoding: "utf8" }).filter((file) =>
      SUITES.some((pattern) => glob(pattern).test(file)),
    );
    assert.ok(files.length > 20);
    const { dependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { dependencies: object };
    const packed = [...Object.keys(dependencies), ...TEST_PACKAGES];
    const seen = new Set<string>();
    const imported = new Set(files.flatMap((file) => packagesOf(join(tests, file), seen)));
    assert.ok(imported.has("pngjs"));
    assert.deepEqual(
      [...imported].filter((name) => !packed.includes(name)),
      [],
    );
  });

  it("names what is not installed", () => {
    const without = (missing: string) => (path: string) => !path.endsWith(missing);
    assert.throws(() => closure(packages, ["a"], without("d")), /Package d is not installed: run npm ci first/);
    assert.throws(() => closure(packages, ["nothing"], () => true), /Package nothing is not installed/);
  });
});
