import assert from "node:assert/strict";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isPictureName, matchesName, pictureFiles, readPattern } from "#src/render/items/picture-files.js";
import { refuses } from "../../../helpers/errors.js";
import { temporaryFolder } from "../../../helpers/folders.js";
import { growsLinearly } from "../../../helpers/growth.js";

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

  it("fail if a folder is not there or too deep", async () => {
    await refuses(found("none/*.png"), "file.not-found", /none: the folder does not exist/);
    put("file.png");
    await refuses(found("file.png/*.png"), "file.read-failed", /cannot be read \(ENOTDIR\)/);
    put(`${"d/".repeat(33)}x.png`);
    await refuses(found("**/*.png"), "file.read-failed", /folders at most 32 deep/);
    assert.deepEqual(await found("d/*.png"), []);
  });
});

describe("picture patterns", () => {
  it("match names by stars and question marks", () => {
    const yes = [
      ["*", "a"],
      ["*.png", "a.png"],
      ["a*b*c", "aXbYbZc"],
      ["?.png", "é.png"],
      ["?", "🦊"],
      ["**", "x"],
      [".*", ".a"],
      ["[a].png", "[a].png"],
      ["a*", "a\nb"],
    ];
    const no = [
      ["*.png", "a.jpg"],
      ["?", "ab"],
      ["?", ""],
      ["*", ".hidden"],
      ["a*b", "acbd"],
      ["A", "a"],
      ["", "a"],
    ];
    for (const [pattern, name] of yes) assert.ok(matchesName(pattern!, name!), `${pattern} ${name}`);
    for (const [pattern, name] of no) assert.ok(!matchesName(pattern!, name!), `${pattern} ${name}`);
  });

  it("agree with a regular expression on all short names", () => {
    const words = (letters: string, length: number): string[] =>
      length === 0
        ? [""]
        : words(letters, length - 1).flatMap((word) => [
            word,
            ...(word.length === length - 1 ? [...letters].map((c) => word + c) : []),
          ]);
    for (const pattern of words("ab*?", 4)) {
      const expected = new RegExp(`^${pattern.replaceAll("*", ".*").replaceAll("?", ".")}$`);
      for (const name of words("ab", 4))
        assert.equal(matchesName(pattern, name), expected.test(name), `${pattern} ${name}`);
    }
  });

  it("take time that grows with the length of a name, whatever the stars", async () => {
    const pattern = `${"*a".repeat(100)}b`;
    await growsLinearly(
      2500,
      (size) => "a".repeat(size),
      (name) => assert.ok(!matchesName(pattern, name)),
    );
  });

  it("are split into a folder and alternatives", async () => {
    assert.deepEqual(readPattern("photos/*.png"), { folder: "photos", paths: [["*.png"]] });
    assert.deepEqual(readPattern("*.png"), { folder: ".", paths: [["*.png"]] });
    assert.deepEqual(readPattern("/*/b.png"), { folder: "/", paths: [["*", "b.png"]] });
    assert.deepEqual(readPattern("a/b/{c,d}/**/x.{png,jpg}").folder, "a/b");
    assert.deepEqual(readPattern("a/{b,c/d}.{png,jpg}").paths, [["b.png"], ["b.jpg"], ["c", "d.png"], ["c", "d.jpg"]]);
    assert.deepEqual(readPattern("a/{b*").paths, [["{b*"]]);
    assert.deepEqual(readPattern("a/**").paths, [["**", "*"]]);
    await refuses(() => readPattern("{a,b}".repeat(10)), "usage.invalid", /expected at most 64 alternatives in braces/);
    await refuses(() => readPattern("*".repeat(5000)), "usage.invalid", /at most 4096 characters, received 5000/);
  });

  it("know pictures by their endings", () => {
    for (const name of ["a.png", "A.JPG", "a.b.jpeg", "x.webp", "x.avif", "x.gif", "x.tif", "x.TIFF"])
      assert.ok(isPictureName(name), name);
    for (const name of ["png", ".png", "a.txt", "a.png.bak", ""]) assert.ok(!isPictureName(name), name);
  });
});
