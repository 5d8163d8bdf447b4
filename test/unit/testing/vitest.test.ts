import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, temporaryFolder } from "../../helpers/folders.js";
import { makeProject } from "../../helpers/process/docs.js";

const TEST = `import "latentkit/testing/vitest";
import { expect, test } from "vitest";

const graph = {
  1: { class_type: "SolidMask", inputs: { value: 0.5, width: 8, height: 8 } },
  2: { class_type: "MaskToImage", inputs: { mask: ["1", 0] } },
  3: { class_type: "SaveImage", inputs: { images: ["2", 0], filename_prefix: "a" } },
};
test("paints a mask", async () => {
  const matched: Promise<void> = expect(graph).toMatchRender({ tolerance: 1 });
  await matched;
  await expect(graph).not.toMatchRender({ name: "paints a mask", set: { "1.value": 0.1 } });
});
`;

describe("latentkit/testing/vitest @long", () => {
  const folder = temporaryFolder();

  it("adds the matcher and its types by one import", () => {
    makeProject(folder());
    writeFileSync(join(folder(), "package.json"), '{ "type": "module" }');
    writeFileSync(join(folder(), "mask.test.ts"), TEST);
    const compiler = join(root, "node_modules/typescript/bin/tsc");
    const options = ["--noEmit", "--module", "nodenext", "--target", "es2022", "--strict", "--skipLibCheck"];
    const compiled = (file: string) =>
      spawnSync(process.execPath, [compiler, ...options, "--types", "node", file], { cwd: folder(), encoding: "utf8" });
    assert.equal(compiled("mask.test.ts").stdout, "");
    writeFileSync(join(folder(), "wrong.ts"), TEST.replace("tolerance", "tolerence"));
    assert.match(compiled("wrong.ts").stdout, /'tolerence' does not exist/);
    const env = { ...process.env, CI: "", NO_COLOR: "1" };
    const program = join(folder(), "node_modules/.bin/vitest");
    const { status, stdout, stderr } = spawnSync(program, ["run"], { cwd: folder(), env, encoding: "utf8" });
    assert.equal(status, 0, stdout + stderr);
    assert.ok(existsSync(join(folder(), "__snapshots__/mask-paints-a-mask-1.png")));
  });
});
