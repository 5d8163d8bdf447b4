import assert from "node:assert/strict";
import { basename, join } from "node:path";
import { ItemFiles, itemStem, readTemporary, settleFiles } from "#src/io/files/item-files.js";
import { filesIn, temporaryFolder } from "../../../helpers/folders.js";

describe("files of a batch's item", () => {
  const folder = temporaryFolder();

  it("keep second links only where there is a journal, and number further images", async () => {
    const names = { batch: "0123456789ab", position: 0, number: 1, isKept: false };
    const files = new ItemFiles(names);
    await files.writeNumbered(folder(), "p", "_.png", Buffer.from("x"));
    await files.writeNumbered(folder(), "p", "_.png", Buffer.from("x"));
    assert.deepEqual(filesIn(folder()), ["p_00001-2_.png", "p_00001_.png"]);
    const kept = new ItemFiles({ ...names, number: 2, isKept: true });
    await kept.writeNumbered(folder(), "p", "_.png", Buffer.from("x"));
    assert.deepEqual(kept.written, [{ path: join(folder(), "p_00002_.png"), temporary: kept.written[0]!.temporary }]);
    assert.deepEqual(readTemporary(basename(kept.written[0]!.temporary)), {
      batch: names.batch,
      position: 0,
      isProof: true,
    });
    await settleFiles(kept.written);
    assert.deepEqual(filesIn(folder()), ["p_00001-2_.png", "p_00001_.png", "p_00002_.png"]);
    assert.equal(itemStem({ number: 123456 }, "a"), "a_123456");
    assert.equal(itemStem({ number: 1, name: "{prefix}$&{prefix}" }, "$1"), "$1$&$1");
  });
});
