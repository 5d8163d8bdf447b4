import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { openRegular, openRegularSync, readRegular, readRegularSync } from "#src/io/regular-file.js";
import { temporaryFolder } from "../../helpers/folders.js";
import { latentkit } from "../../helpers/process/cli.js";
import { skip } from "../../helpers/skip.js";

describe("files named from outside", () => {
  const folder = temporaryFolder();
  const path = (name: string) => join(folder(), name);
  const pipe = (context: Mocha.Context, name: string) => {
    if (spawnSync("mkfifo", [path(name)]).status !== 0) skip(context, "mkfifo makes no pipe here");
    return path(name);
  };

  it("are read up to a length", async () => {
    writeFileSync(path("a"), "abc");
    assert.equal(String(await readRegular(path("a"), 3)), "abc");
    assert.equal(String(readRegularSync(path("a"), 3)), "abc");
    assert.deepEqual([await readRegular(path("a"), 2), readRegularSync(path("a"), 2)], [undefined, undefined]);
  });

  it("are not pipes, devices and folders", async function () {
    for (const [place, code] of [
      [pipe(this, "pipe"), "a pipe"],
      ["/dev/zero", "a device"],
      [folder(), "EISDIR"],
    ] as const) {
      await assert.rejects(openRegular(place), { code });
      assert.throws(() => openRegularSync(place), { code });
    }
  });

  it("are refused at once by the command line where they are pipes", async function () {
    writeFileSync(path("graph.json"), '{"1":{"class_type":"EmptyLatentImage","inputs":{}}}');
    const [json, csv, yaml, png] = ["p.json", "p.csv", "p.yaml", "p.png"].map((name) => pipe(this, name)) as string[];
    const commands = [
      ["render", json!],
      ["validate", json!],
      ["test", json!],
      ["convert", "/dev/zero"],
      ["render", path("graph.json"), "--items", csv!],
      ["serve", "--config", yaml!],
      ["inspect", png!],
      ["verify", png!],
    ];
    for (const command of commands) {
      const { code, stdout, stderr } = await latentkit(command, { cwd: folder() });
      assert.ok(code === 1 || code === 2 || code === 3, `${command.join(" ")}: ${stderr}`);
      assert.match(stdout + stderr, /a pipe|a device/, command.join(" "));
    }
  });
});
