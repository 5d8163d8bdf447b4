import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { loadConfig } from "#src/render/load-config.js";
import { filesIn, root, temporaryFolder } from "../helpers/folders.js";
import { blocksOf, freePort, isServing, makeProject, twoTerminals } from "../helpers/process/docs.js";

const readme = readFileSync(join(root, "README.md"), "utf8");
const blocks = blocksOf(readme);

/** Runs code in a folder that looks like the checkout, with latentkit installed and on the PATH. */
function run(folder: string, program: string, args: string[]) {
  const bin = join(folder, "node_modules/.bin");
  const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}`, LATENTKIT_OUTPUT_DIR: "" };
  const done = spawnSync(program, args, { cwd: folder, env, encoding: "utf8", timeout: 300_000 });
  assert.equal(done.status, 0, `${done.stdout}${done.stderr}`);
  return done.stdout;
}

describe("README.md", () => {
  const folder = temporaryFolder();
  beforeEach(() => {
    makeProject(folder());
    symlinkSync(join(root, "scripts"), join(folder(), "scripts"));
  });

  it("has only blocks that this test can run", () => {
    const known = ["bash", "js", "yaml"];
    assert.deepEqual(
      blocks.filter(({ language }) => !known.includes(language)),
      [],
    );
    assert.ok(blocks.length >= 5);
  });

  for (const [index, { language, code }] of blocks.entries()) {
    // a block that serves never ends: it runs with the next one, which is its other terminal
    if (isServing(code)) continue;
    const server = blocks[index - 1]?.code ?? "";
    const title = code
      .trim()
      .split("\n")
      .find((line) => line !== "" && !line.startsWith("import"))!
      .trim();
    it(`block ${index + 1} runs: ${title}`, async () => {
      if (language === "bash") {
        cpSync(join(root, "package.json"), join(folder(), "package.json"));
        const script = isServing(server) ? twoTerminals(server, [code], await freePort()) : code;
        const out = run(folder(), "bash", ["-euo", "pipefail", "-c", script]);
        if (isServing(server)) assert.match(out, /^event: image\n[\s\S]*^event: done\n/m);
      } else if (language === "js") {
        writeFileSync(join(folder(), "block.mjs"), code);
        run(folder(), process.execPath, ["block.mjs"]);
      } else {
        writeFileSync(join(folder(), "block.yaml"), code);
        loadConfig({ file: join(folder(), "block.yaml"), env: {} });
        return;
      }
      if (/\brender\(|render /.test(code) || code.includes("npm start") || isServing(server)) {
        assert.ok(filesIn(join(folder(), "out")).some((file) => file.endsWith(".png")));
      }
    });
  }

  it("links only to files that exist", () => {
    const links = [...readme.matchAll(/\]\(([^)#:]+)\)/g)].map(([, link]) => link!);
    assert.ok(links.length > 3);
    assert.deepEqual(
      links.filter((link) => !existsSync(join(root, link))),
      [],
    );
  });
});
