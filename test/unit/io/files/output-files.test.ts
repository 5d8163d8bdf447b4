import assert from "node:assert/strict";
import { join } from "node:path";
import { MemoryFiles } from "#src/io/files/output-files.js";
import type { Ending } from "#src/io/files/output-path.js";
import { refuses } from "../../../helpers/errors.js";

const folder = join("out", "a");
const text = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString();

describe("MemoryFiles", () => {
  it("numbers files from 1, by folder, name and ending", async () => {
    const files = new MemoryFiles();
    const number = (where: string, name: string, ending: Ending) =>
      files.writeNumbered(where, name, ending, Buffer.from("x"));
    assert.equal(await number(folder, "fox", "_.png"), "fox_00001_.png");
    assert.equal(await number(folder, "fox", "_.png"), "fox_00002_.png");
    assert.equal(await number(folder, "fox", ".png"), "fox_00001.png");
    assert.equal(await number("out", "fox", "_.png"), "fox_00001_.png");
  });

  it("passes names that are taken, replaces, and appends", async () => {
    const files = new MemoryFiles();
    const nameAt = (attempt: number) => `n${attempt}.png`;
    assert.equal(await files.writeNew(folder, Buffer.from("1"), nameAt), "n0.png");
    assert.equal(await files.writeNew(folder, Buffer.from("2"), nameAt), "n1.png");
    await files.writeReplacing(folder, "n0.png", Buffer.from("3"));
    await files.writeAppending(folder, "n1.png", Buffer.from("4"));
    await files.writeAppending(folder, "t.txt", Buffer.from("5"));
    const contents = ["n0.png", "n1.png", "t.txt", "none"].map((name) => text(files.bytesOf(join(folder, name))));
    assert.deepEqual(contents, ["3", "24", "5", ""]);
  });

  it("keeps memory that is the file's alone, and copies any other", async () => {
    const files = new MemoryFiles();
    const own = new Uint8Array([1, 2, 3]);
    const part = new Uint8Array([0, 1, 2, 3]).subarray(1);
    await files.writeReplacing(folder, "own", own);
    await files.writeReplacing(folder, "part", part);
    assert.equal(files.bytesOf(join(folder, "own"))!.buffer, own.buffer);
    const copy = files.bytesOf(join(folder, "part"))!;
    assert.deepEqual([copy.buffer.byteLength, [...copy]], [3, [1, 2, 3]]);
  });

  it("refuses files beyond its limit, and counts a replaced one once", async () => {
    const files = new MemoryFiles(5);
    await files.writeReplacing(folder, "a", new Uint8Array(4));
    await files.writeReplacing(folder, "a", new Uint8Array(5));
    const more = () => files.writeNumbered(folder, "fox", ".png", new Uint8Array(1));
    await refuses(
      more,
      "file.write-failed",
      /^Cannot keep "fox_00001.png" in memory: the files of one render may have 5 bytes together; .* they would have 6\.$/,
    );
  });
});
