import assert from "node:assert/strict";

interface Script {
  closure(
    packages: Record<string, { dependencies?: object; optionalDependencies?: object }>,
    names: readonly string[],
    isInstalled: (path: string) => boolean,
  ): string[];
}

describe("scripts/gpu-pack", () => {
  let closure: Script["closure"];
  before(async () => {
    ({ closure } = (await import(new URL("../../../../scripts/gpu-pack.mjs", import.meta.url).href)) as Script);
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

  it("names what is not installed", () => {
    const without = (missing: string) => (path: string) => !path.endsWith(missing);
    assert.throws(() => closure(packages, ["a"], without("d")), /Package d is not installed: run npm ci first/);
    assert.throws(() => closure(packages, ["nothing"], () => true), /Package nothing is not installed/);
  });
});
