import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { finishedFiles, isFinished } from "#src/render/batch/journal/journal-reading.js";
import { printRecord } from "#src/render/batch/journal/journal-records.js";
import { temporaryFolder } from "../../../../helpers/folders.js";

const key = "0123456789abcdef";
const header = printRecord({ type: "batch", version: 1, engine: "1", graph: "sha256:0", id: "0123456789ab", first: 1 });
const done = (item: number, ...files: string[]) => printRecord({ type: "done", item, key, files, ms: 1 });
const end = (failed: number) => printRecord({ type: "end", done: 1, skipped: 0, failed });

describe("reading a journal beside its batch", () => {
  const folder = temporaryFolder();
  const write = (text: string) => {
    writeFileSync(join(folder(), "journal.jsonl"), text);
    return join(folder(), "journal.jsonl");
  };

  it("tells a batch that came to a good end from all others", async () => {
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
      "\u0000",
    ]) {
      assert.equal(await isFinished(write(text)), false, text);
    }
    assert.equal(await isFinished(join(folder(), "none.jsonl")), false);
    mkdirSync(join(folder(), "folder"));
    assert.equal(await isFinished(join(folder(), "folder")), false, "whoever opens it says what is wrong");
  });

  it("finds the files of finished items, the last word of each", async () => {
    const text = `${header}${done(0, "a.png", "b.png")}${done(2)}${done(0, "c.png")}${done(3, "d.png").slice(0, -9)}`;
    assert.deepEqual(
      [...(await finishedFiles(write(text)))],
      [
        [0, ["c.png"]],
        [2, []],
      ],
    );
  });
});
