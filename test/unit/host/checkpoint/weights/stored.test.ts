import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { hasChanged, openWeightFile } from "#src/host/checkpoint/weights/stored.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { f32, words, writeWeights } from "../../../../helpers/models/weight-file.js";

describe("openWeightFile", () => {
  const folder = temporaryFolder();
  const written = (name = "w.safetensors") =>
    writeWeights(join(folder(), name), { a: f32([2, 3]), "b.c": words("F16", [1], [0]), empty: f32([0]) });

  it("returns keys, types, shapes and bytes of a file in the order of its header", async () => {
    const path = written();
    const { weights, bytes, metadata } = await openWeightFile(path);
    const start = bytes - 26;
    assert.deepEqual(
      [...weights],
      [
        ["a", { file: path, dtype: "F32", shape: [2, 3], from: start, to: start + 24 }],
        ["b.c", { file: path, dtype: "F16", shape: [1], from: start + 24, to: bytes }],
        ["empty", { file: path, dtype: "F32", shape: [0], from: bytes, to: bytes }],
      ],
    );
    assert.deepEqual(metadata, {});
  });

  it("follows symbolic links to the file's own path", async () => {
    const path = written();
    const link = join(folder(), "link.safetensors");
    symlinkSync(path, link);
    const { path: own, weights } = await openWeightFile(link);
    assert.deepEqual([own, weights.get("a")!.file], [path, path]);
  });

  it("refuses what is no file, is damaged or is cut short, and names it", async () => {
    await refuses(openWeightFile(join(folder(), "none.safetensors")), "file.not-found", /none\.safetensors" not found/);
    mkdirSync(join(folder(), "dir"));
    await refuses(openWeightFile(join(folder(), "dir")), "file.read-failed", /dir" cannot be read: EISDIR/);
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
      await refuses(openWeightFile(join(folder(), name)), "safetensors.invalid", new RegExp(`${name}": Safetensors: `));
    }
  });

  it("tells a changed file by size, time and identity", async () => {
    const file = await openWeightFile(written());
    assert.equal(await hasChanged(file), false);
    utimesSync(file.path, 1000, 1000);
    assert.equal(await hasChanged(file), true);
    const touched = await openWeightFile(file.path);
    assert.equal(touched.modifiedNs, 1_000_000_000_000n);
    appendFileSync(file.path, "x");
    utimesSync(file.path, 1000, 1000);
    assert.equal(await hasChanged(touched), true);
    rmSync(file.path);
    assert.equal(await hasChanged(touched), true);
  });
});
