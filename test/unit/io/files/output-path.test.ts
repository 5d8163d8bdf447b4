import assert from "node:assert/strict";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import {
  counterName,
  expandPrefix,
  makeFolder,
  nextCounter,
  resolveFile,
  resolvePrefix,
} from "#src/io/files/output-path.js";
import { refuses } from "../../../helpers/errors.js";
import { temporaryFolder, tree } from "../../../helpers/folders.js";

describe("io/files/output-path", () => {
  const folder = temporaryFolder();
  const root = resolve("/srv/out");

  it("expands sizes and local time, and nothing else", () => {
    const now = new Date(2024, 2, 7, 4, 5, 6);
    const expand = (prefix: string) => expandPrefix(prefix, { width: 7, height: 5 }, now);
    assert.equal(expand("%year%-%month%-%day%_%hour%%minute%%second%"), "2024-03-07_040506");
    assert.equal(expand("%width%x%height%%width%"), "7x57");
    assert.equal(expand("%batch_num%%foo%%Width%%date:yyyy%%"), "%batch_num%%foo%%Width%%date:yyyy%%");
  });

  it("normalises a prefix to folder and name", () => {
    const place = (prefix: string) => {
      const { subfolder, name } = resolvePrefix(root, prefix);
      return [subfolder, name];
    };
    assert.deepEqual(place("a"), ["", "a"]);
    assert.deepEqual(place(""), ["", "."]);
    assert.deepEqual(place("sub/dir/name"), ["sub/dir", "name"]);
    assert.deepEqual(place("sub/"), ["", "sub"]);
    assert.deepEqual(place("./a/../b"), ["", "b"]);
    assert.deepEqual(place("a//b"), ["a", "b"]);
    assert.deepEqual(place("..a/b"), ["..a", "b"]);
    assert.deepEqual(place("a/..."), ["a", "..."]);
    assert.deepEqual(place("50% off_v1.2_60%"), ["", "50% off_v1.2_60%"]);
    assert.equal(resolvePrefix(root, "a/b").folder, join(root, "a"));
  });

  it("refuses names with line breaks or control characters", async () => {
    for (const control of ["\n", "\r", "\t", "\u001b", "\u007f", "\u0085", "\u009b", "\u2028", "\u2029"]) {
      for (const path of [`a${control}b`, `a${control}/b`, control]) {
        await refuses(() => resolvePrefix(root, path), "path.outside", /a path without line breaks and other control/);
        await refuses(() => resolveFile(root, path, "f"), "path.outside", /a path without line breaks/);
      }
      await refuses(() => resolveFile(root, "t", `a${control}b`), "path.outside", /a path without line breaks/);
    }
    assert.equal(resolvePrefix(root, "für dich \u{1f469}\u{1f680}").name, "für dich \u{1f469}\u{1f680}");
  });

  it("leaves out invisible characters, and refuses what they hide", async () => {
    const hidden = ["\u202e", "\u200b", "\u200d", "\u2066", "\ufeff", "\u00ad", "\u{e0041}"];
    for (const character of hidden) {
      assert.equal(resolvePrefix(root, `a${character}/fox${character}gnp`).name, "foxgnp");
      assert.equal(resolvePrefix(root, `a${character}/fox`).subfolder, "a");
      assert.equal(resolveFile(root, `b${character}`, `txt${character}.exe`).name, "txt.exe");
      await refuses(() => resolvePrefix(root, `.${character}./fox`), "path.outside");
      await refuses(() => resolvePrefix(root, `${character}/etc/fox`), "path.outside");
      await refuses(() => resolveFile(root, "", `.${character}.`), "path.outside");
    }
    for (const refused of ["a\u0085", "a\u009bK", "a\ud800"])
      await refuses(() => resolvePrefix(root, refused), "path.outside");
  });

  it("refuses paths that leave the folder on any system", async () => {
    for (const prefix of [
      "..",
      "../a",
      "a/../..",
      "/a",
      "\\a",
      "..\\a",
      "a\\..\\..\\b",
      "C:\\a",
      "c:/a",
      "a\0",
      "\udc00",
    ]) {
      await refuses(() => resolvePrefix(root, prefix), "path.outside");
      await refuses(() => resolveFile(root, prefix, "f"), "path.outside");
    }
    for (const name of ["a/b", "../a", "/a", "a\0", "C:\\a"]) {
      await refuses(() => resolveFile(root, "t", name), "path.outside");
    }
    assert.deepEqual(resolveFile(root, "./t/", "a.b.txt"), {
      folder: join(root, "t"),
      subfolder: "t",
      name: "a.b.txt",
    });
    assert.equal(resolveFile(root, ".", "f").subfolder, "");
  });

  it("quotes a hostile path briefly", async () => {
    const error = await refuses(() => resolvePrefix(root, `../${"a".repeat(100_000)}`), "path.outside");
    assert.ok(error.message.length < 200);
  });

  it("creates folders inside only", async () => {
    const out = join(folder(), "out");
    await makeFolder(out, resolvePrefix(out, "a/b/c"));
    assert.deepEqual(tree(out), ["a/", "a/b/"]);
    mkdirSync(join(folder(), "elsewhere"));
    symlinkSync(join(folder(), "elsewhere"), join(out, "a/link"));
    symlinkSync("link", join(out, "a/chain"));
    for (const prefix of ["a/link/x", "a/link/deep/x", "a/chain/x"]) {
      await refuses(makeFolder(out, resolvePrefix(out, prefix)), "path.outside", /symbolic link/);
    }
    assert.deepEqual(tree(join(folder(), "elsewhere")), []);
    writeFileSync(join(out, "file"), "");
    await refuses(makeFolder(out, resolvePrefix(out, "file/x")), "file.write-failed");
    await refuses(makeFolder(out, resolvePrefix(out, "file/deep/x")), "file.write-failed");
  });

  it("counts one above the highest", async () => {
    const names = ["p_00001.png", "p_7.jpg", "p_0099wxyz", "p_00500.png", "p_12.jpeg", "p_x_00900.png", "p__00901.png"];
    for (const name of [...names, "p_-902.png", "p_٩٠٣.png", "p_904", "P_00905.png", ".p_906.png"]) {
      writeFileSync(join(folder(), name), "");
    }
    assert.equal(await nextCounter(folder(), "p", ".png"), 501n);
    assert.equal(await nextCounter(folder(), "q", ".png"), 1n);
    assert.equal(await nextCounter(join(folder(), "missing"), "p", ".png"), 1n);
    assert.equal(await nextCounter(folder(), "p_x", ".png"), 901n);
  });

  it("names a path that is not a folder", async () => {
    writeFileSync(join(folder(), "file"), "");
    await refuses(
      () => nextCounter(join(folder(), "file"), "p", ".png"),
      "file.write-failed",
      /^Cannot write "file": a part of the path is not a folder \(ENOTDIR\)\.$/,
    );
  });

  it("counts SaveImage's names separately", async () => {
    for (const name of ["p_00001_.png", "p_00002.png", "p_00009_.png"]) writeFileSync(join(folder(), name), "");
    assert.equal(await nextCounter(folder(), "p", ".png"), 3n);
    assert.equal(await nextCounter(folder(), "p", "_.png"), 10n);
  });

  it("writes counters with at least five digits", () => {
    assert.equal(counterName("a", 1n), "a_00001");
    assert.equal(counterName("a", 123456n), "a_123456");
  });
});
