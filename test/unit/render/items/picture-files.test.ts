import assert from "node:assert/strict";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pictureFiles } from "#src/render/items/picture-files.js";
import { readPattern } from "#src/render/items/picture-pattern.js";
import { refuses } from "../../../helpers/errors.js";
import { temporaryFolder } from "../../../helpers/folders.js";

describe("picture files", () => {
  const folder = temporaryFolder();
  const put = (...names: string[]) => {
    for (const name of names) {
      const path = join(folder(), name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, "");
    }
  };
  const found = async (pattern: string) => {
    const files: string[] = [];
    for await (const file of pictureFiles(readPattern(`${folder()}/${pattern}`))) files.push(file);
    return files;
  };

  it("are listed in code-unit order of their paths, folders included", async () => {
    const names = [
      "b.png",
      "a.png",
      "Z.png",
      "a/x.png",
      "a-b.png",
      "é.png",
      "a/b/c.jpg",
      "10.png",
      "9.png",
      "notes.txt",
      ".hidden.png",
      ".git/x.png",
    ];
    put(...names);
    assert.deepEqual(await found("*"), ["10.png", "9.png", "Z.png", "a-b.png", "a.png", "b.png", "é.png"]);
    const all = names.filter((name) => !name.startsWith(".") && !name.endsWith(".txt"));
    assert.deepEqual(await found("**/*"), all.sort());
    assert.deepEqual(await found("**"), all.sort());
    assert.deepEqual(await found("**/*.jpg"), ["a/b/c.jpg"]);
    assert.deepEqual(await found("a/**/*.{png,jpg}"), ["b/c.jpg", "x.png"], "relative to the folder a");
    assert.deepEqual(await found("*/x.png"), ["a/x.png"]);
    assert.deepEqual(await found("{a,*}/**/**/c.*"), ["a/b/c.jpg"], "each once");
    assert.deepEqual(await found(".*.png"), [".hidden.png"]);
  });

  it("do not follow links to folders, and name links to files", async () => {
    put("real/a.png");
    symlinkSync(join(folder(), "real"), join(folder(), "linked"));
    symlinkSync(join(folder()), join(folder(), "real/circle"));
    symlinkSync("/etc/passwd", join(folder(), "real/out.png"));
    assert.deepEqual(await found("**/*.png"), ["real/a.png", "real/out.png"]);
  });

  it("fail where a folder is not there or too deep", async () => {
    await refuses(found("none/*.png"), "file.not-found", /none: there is no such folder/);
    put("file.png");
    await refuses(found("file.png/*.png"), "file.read-failed", /cannot be read \(ENOTDIR\)/);
    put(`${"d/".repeat(33)}x.png`);
    await refuses(found("**/*.png"), "file.read-failed", /folders at most 32 deep/);
    assert.deepEqual(await found("d/*.png"), []);
  });
});
