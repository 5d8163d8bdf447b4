import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { root, temporaryFolder } from "../../helpers/folders.js";
import { makeProject } from "../../helpers/process/docs.js";

/** The matchers' type of jest's package `expect`, and its `@jest/globals`. */
const EXPECT = `export interface Matchers<R extends void | Promise<void>, T = unknown> { toBe(expected: T): R }
`;
const GLOBALS = `import type { Matchers } from "expect";
export declare const expect: <T>(actual: T) => Matchers<void, T> & { not: Matchers<void, T> };
`;
/** The global type of `@types/jest`. */
const TYPES = `declare namespace jest { interface Matchers<R, T = {}> { toBe(expected: T): R } }
declare const expect: <T>(actual: T) => jest.Matchers<void, T>;
`;

const OTHER_REALM = fileURLToPath(new URL("../../helpers/process/other-realm.js", import.meta.url));

describe("latentkit/testing/jest", () => {
  const folder = temporaryFolder();
  const write = (path: string, text: string) => {
    mkdirSync(join(folder(), path, ".."), { recursive: true });
    writeFileSync(join(folder(), path), text);
  };
  const start = () => {
    makeProject(folder());
    write("package.json", '{ "type": "module" }');
  };

  it("says what it needs if no runner has made a global expect", () => {
    start();
    write("alone.mjs", 'import "latentkit/testing/jest";');
    const { status, stderr } = spawnSync(process.execPath, ["alone.mjs"], { cwd: folder(), encoding: "utf8" });
    assert.equal(status, 1);
    assert.match(stderr, /latentkit\/testing\/jest: Jest's global expect was not found; .* latentkit\/testing\./);
  });

  it("renders with the globals of another context, which jest's tests have", () => {
    const file = join(folder(), "render.mjs");
    writeFileSync(
      file,
      `import { decodePng, modelSampling, render, Tensor } from ${JSON.stringify(join(root, "dist/index.js"))};
if (modelSampling("sd15").sigmas instanceof Float32Array) throw new Error("these globals are Node's own");
const graph = ${JSON.stringify(join(root, "examples/text-to-image.json"))};
for (const sampler of ["euler", "dpmpp_sde"]) {
  const set = { "5.sampler_name": sampler, steps: 2, width: 64, height: 64 };
  const { files, error } = await render(graph, { set, output: "memory" });
  if (error !== undefined) throw error;
  const deep = await (await Tensor.fromImage(files[0].bytes)).toPng({ bitDepth: 16 });
  console.log(sampler, (await decodePng(deep)).width);
}
`,
    );
    const args = ["--experimental-vm-modules", "--no-warnings", OTHER_REALM, file];
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
    assert.equal(stdout, "euler 64\ndpmpp_sde 64\n", stderr);
  });

  it("adds the matcher to a global expect @long", () => {
    start();
    write(
      "mask.test.js",
      `import "latentkit/testing/jest";
const graph = {
  1: { class_type: "SolidMask", inputs: { value: 0.5, width: 8, height: 8 } },
  2: { class_type: "MaskToImage", inputs: { mask: ["1", 0] } },
  3: { class_type: "SaveImage", inputs: { images: ["2", 0], filename_prefix: "a" } },
};
test("paints a mask", () => expect(graph).toMatchRender());
`,
    );
    const program = join(folder(), "node_modules/.bin/vitest");
    const env = { ...process.env, CI: "", NO_COLOR: "1" };
    // vitest's expect takes matchers as jest's does
    const args = ["run", "--globals"];
    const { status, stdout, stderr } = spawnSync(program, args, { cwd: folder(), env, encoding: "utf8" });
    assert.equal(status, 0, stdout + stderr);
  });

  for (const [what, files] of [
    ["@jest/globals", { "node_modules/expect/index.d.ts": EXPECT, "node_modules/@jest/globals/index.d.ts": GLOBALS }],
    ["@types/jest", { "types.d.ts": TYPES }],
  ] as const) {
    it(`declares the matcher for ${what} @long`, () => {
      start();
      for (const [path, text] of Object.entries(files)) write(path, text);
      const runner =
        what === "@jest/globals" ? 'import { expect } from "@jest/globals";' : '/// <reference path="types.d.ts" />';
      const test = (option: string) => `${runner}
import "latentkit/testing/jest";
export const matched: Promise<void> = expect({}).toMatchRender({ ${option}: 1 });
`;
      write("right.ts", test("tolerance"));
      write("wrong.ts", test("tolerence"));
      const compiler = join(root, "node_modules/typescript/bin/tsc");
      const options = [
        "--noEmit",
        "--module",
        "esnext",
        "--moduleResolution",
        "bundler",
        "--target",
        "es2022",
        "--strict",
      ];
      const compiled = (file: string) =>
        spawnSync(
          process.execPath,
          [compiler, ...options, "--skipLibCheck", "--preserveSymlinks", "--types", "node", file],
          {
            cwd: folder(),
            encoding: "utf8",
          },
        ).stdout;
      assert.equal(compiled("right.ts"), "");
      assert.match(compiled("wrong.ts"), /'tolerence' does not exist/);
    });
  }
});
