import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { type FileState, openWeightFile, requireUnchanged } from "#src/host/checkpoint/weights/stored.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { f32, words, writeWeights } from "../../../../helpers/models/weight-file.js";

describe("openWeightFile", () => {
  const opened = (path: string) => openWeightFile({ name: `sub/${basename(path)}`, path });
  const folder = temporaryFolder();
  const written = (name = "w.safetensors") =>
    writeWeights(join(folder(), name), { a: f32([2, 3]), "b.c": words("F16", [1], [0]), empty: f32([0]) });

  it("returns keys, types, shapes and bytes of a file in the order of its header", async () => {
    const path = written();
    const { weights, bytes, metadata } = await opened(path);
    const start = bytes - 26;
    assert.deepEqual(
      [...weights],
      [
        ["a", { file: path, key: "a", dtype: "F32", shape: [2, 3], from: start, to: start + 24 }],
        ["b.c", { file: path, key: "b.c", dtype: "F16", shape: [1], from: start + 24, to: bytes }],
        ["empty", { file: path, key: "empty", dtype: "F32", shape: [0], from: bytes, to: bytes }],
      ],
    );
    assert.deepEqual(metadata, {});
  });

  it("follows symbolic links to the file's own path", async () => {
    const path = written();
    const link = join(folder(), "link.safetensors");
    symlinkSync(path, link);
    const { path: own, weights } = await opened(link);
    assert.deepEqual([own, weights.get("a")!.file], [path, path]);
  });

  it("refuses anything but a file, and damaged or truncated ones, by name", async () => {
    await refuses(
      opened(join(folder(), "none.safetensors")),
      "file.not-found",
      /^Model "sub\/none\.safetensors" no longer exists\.$/,
    );
    mkdirSync(join(folder(), "dir"));
    await refuses(opened(join(folder(), "dir")), "file.read-failed", /^Model "sub\/dir" cannot be read: EISDIR\.$/);
    const path = written();
    const bytes = readFileSync(path);
    const damaged: [string, Uint8Array][] = [
      ["empty", new Uint8Array()],
      ["five", bytes.subarray(0, 5)],
      ["half header", bytes.subarray(0, 40)],
      ["short", bytes.subarray(0, bytes.length - 1)],
      ["text", Buffer.from("version https://git-lfs.github.com/spec/v1\n")],
    ];
    for (const [name, content] of damaged) {
      writeFileSync(join(folder(), name), content);
      await refuses(
        opened(join(folder(), name)),
        "safetensors.invalid",
        new RegExp(`^Model "sub/${name}": ${name === "short" ? "the file is cut off" : "expected"}`),
      );
    }
  });

  it("tells a changed file by size, time and identity", async () => {
    const changed = (file: FileState) =>
      refuses(
        requireUnchanged([file]),
        "model.invalid",
        /^Model ".*" has changed since it was loaded: run this again\.$/,
      );
    const file = await opened(written());
    await requireUnchanged([file]);
    utimesSync(file.path, 1000, 1000);
    await changed(file);
    const touched = await opened(file.path);
    assert.equal(touched.modifiedNs, 1_000_000_000_000n);
    appendFileSync(file.path, "x");
    utimesSync(file.path, 1000, 1000);
    await changed(touched);
    rmSync(file.path);
    await changed(touched);
  });
});
