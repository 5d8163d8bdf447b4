import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import {
  CollectedFiles,
  type CollectedWrite,
  ItemFiles,
  itemStem,
  publish,
  readTemporary,
  settleFiles,
} from "#src/io/files/item-files.js";
import type { OutputFiles } from "#src/io/files/output-files.js";
import { resolvePrefix } from "#src/io/files/output-path.js";
import { refuses } from "../../../helpers/errors.js";
import { filesIn, hashesIn, temporaryFolder } from "../../../helpers/folders.js";

describe("files of a batch's item", () => {
  const folder = temporaryFolder();

  it("keep second links only if there is a journal, and number further images", async () => {
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

const names = { batch: "0123456789ab", position: 6, number: 7, isKept: false };
const bytes = (text: string) => Uint8Array.from(Buffer.from(text));

async function writeAll(files: OutputFiles, folder: string): Promise<string[]> {
  const told: string[] = [];
  for (const prefix of ["sub/p", "p"]) {
    const target = resolvePrefix(folder, prefix);
    await files.makeFolder(folder, target);
    for (const text of ["x", "y"]) told.push(await files.writeNumbered(target.folder, "p", "_.png", bytes(text)));
  }
  told.push(await files.writeNew(folder, bytes("z"), (attempt) => `n_${attempt}.png`));
  await files.writeAppending(folder, "log.txt", bytes("one"));
  await files.writeAppending(folder, "log.txt", bytes("two"));
  await files.writeReplacing(folder, "last.txt", bytes("end"));
  return told;
}

describe("collected writes of an item", () => {
  const folder = temporaryFolder();

  it("become the files that the item would have written, and tell nodes the same names", async () => {
    const [near, far] = [join(folder(), "near"), join(folder(), "far")];
    const own = new ItemFiles(names);
    const collected = new CollectedFiles(names, far);
    assert.deepEqual(await writeAll(collected, far), await writeAll(own, near));
    await own.commit();
    assert.deepEqual(filesIn(far), []);
    const elsewhere = new ItemFiles(names);
    const paths = await publish(collected.writes, far, elsewhere);
    assert.equal(paths.get(join(far, "sub/p_00007-2_.png")), join(far, "sub/p_00007-2_.png"));
    assert.ok(!filesIn(far).includes("log.txt"), "texts wait for the commit");
    await elsewhere.commit();
    assert.deepEqual(hashesIn(far), hashesIn(near));
  });

  it("go past names that others have taken meanwhile", async () => {
    const collected = new CollectedFiles(names, folder());
    await writeAll(collected, folder());
    for (const name of ["p_00007_.png", "n_0.png", "log.txt"]) writeFileSync(join(folder(), name), "taken");
    const files = new ItemFiles(names);
    const paths = await publish(collected.writes, folder(), files);
    await files.commit();
    assert.equal(paths.get(join(folder(), "n_0.png")), join(folder(), "n_1.png"));
    assert.equal(readFileSync(paths.get(join(folder(), "p_00007_.png"))!, "utf8"), "x");
    assert.equal(readFileSync(join(folder(), "p_00007_.png"), "utf8"), "taken");
    assert.equal(readFileSync(join(folder(), "log.txt"), "utf8"), "takenonetwo");
  });

  it("never leave the output folder, whatever another process sends", async () => {
    const write = { kind: "replacing", root: "", folder: "", filename: "a", bytes: bytes("x") } as const;
    const wrong: Partial<CollectedWrite>[] = [
      { folder: "../up" },
      { root: "/etc" },
      { filename: "../a" },
      { filename: "a/b" },
    ];
    for (const fields of wrong) {
      await refuses(
        publish([{ ...write, ...fields } as CollectedWrite], folder(), new ItemFiles(names)),
        "path.outside",
      );
    }
    assert.deepEqual(filesIn(folder()), []);
  });
});
