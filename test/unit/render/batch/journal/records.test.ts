import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { isFinished, printRecord, RecordedFiles, readJournal } from "#src/render/batch/journal/records.js";
import { temporaryFolder } from "../../../../helpers/folders.js";

const key = "0123456789abcdef";
const header = printRecord({ type: "batch", version: 1, engine: "1", graph: "sha256:0", id: "0123456789ab", first: 1 });
const done = (item: number, ...files: string[]) => printRecord({ type: "done", item, key, files, ms: 1 });
const end = (failed: number) => printRecord({ type: "end", done: 1, skipped: 0, failed });

describe("reading of journals", () => {
  const folder = temporaryFolder();
  const write = (text: string) => {
    writeFileSync(join(folder(), "journal.jsonl"), text);
    return join(folder(), "journal.jsonl");
  };

  it("distinguishes a batch that came to a good end from all others", async () => {
    assert.equal(await isFinished(write(header + done(0, "a.png") + end(0))), true);
    const long = done(1, ...Array.from({ length: 500 }, (_, i) => `file-${i}.png`));
    assert.equal(await isFinished(write(header + long + end(0))), true);
    for (const text of [
      "",
      header,
      header + end(1),
      header + end(0) + done(1),
      header + long,
      `${header}{"type": "end"`,
      (header + end(0)).trimEnd(),
      "\u0000",
    ]) {
      assert.equal(await isFinished(write(text)), false, text);
    }
    assert.equal(await isFinished(join(folder(), "none.jsonl")), false);
    mkdirSync(join(folder(), "folder"));
    assert.equal(await isFinished(join(folder(), "folder")), false, "opening it reports the error");
  });

  it("reads the files of single records in any order, long ones included", async () => {
    const records = Array.from({ length: 2000 }, (_, i) => done(i, `sub/${i}.png`, "é".repeat(i % 3 === 0 ? 50 : 0)));
    records.push(done(2000, ...Array.from({ length: 40_000 }, (_, i) => `file-${i}.png`)), done(2001, "last.png"));
    const path = write(header + records.join(""));
    const file = await open(path);
    try {
      const { state, header: found } = await readJournal(file, path, async () => "whole", false);
      assert.deepEqual([found?.id, state.finished], ["0123456789ab", 2002]);
      const files = new RecordedFiles(file, path);
      const first = async (item: number) => (await files.at(state.offsetOf(item)))[0];
      for (const item of [0, 1, 2, 1, 1999, 0, 2001, 5, 4, 3]) {
        assert.equal(await first(item), item === 2001 ? "last.png" : `sub/${item}.png`);
      }
      assert.equal((await files.at(state.offsetOf(2000))).length, 40_000);
    } finally {
      await file.close();
    }
  });

  it("takes the last record of an item, and no line that a kill cut short", async () => {
    const text = `${header}${done(0, "a.png", "b.png")}${done(2)}${done(0, "c.png")}${done(3, "d.png").slice(0, -9)}`;
    const path = write(text);
    const file = await open(path);
    try {
      const { state, length } = await readJournal(file, path, async () => "whole", false);
      const files = new RecordedFiles(file, path);
      assert.deepEqual(await files.at(state.offsetOf(0)), ["c.png"]);
      assert.deepEqual([state.finished, state.of(3, key), length], [2, "unknown", text.lastIndexOf("\n") + 1]);
    } finally {
      await file.close();
    }
  });
});
