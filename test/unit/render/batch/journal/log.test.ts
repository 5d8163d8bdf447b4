import assert from "node:assert/strict";
import { appendFileSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { packageVersion } from "#src/base/package.js";
import { JournalLog, type LogOptions, lockFile } from "#src/render/batch/journal/log.js";
import { type JournalHeader, printRecord } from "#src/render/batch/journal/records.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { skip } from "../../../../helpers/skip.js";

const header: JournalHeader = {
  type: "batch",
  version: 1,
  engine: "0.1.0",
  graph: "sha256:00",
  id: "0123456789ab",
  first: 1,
};
const key = (item: number) => item.toString(16).padStart(16, "0");
const intent = (item: number) =>
  ({ type: "intent", item, key: key(item), values: { a: 2n ** 64n }, names: {} }) as const;
const done = (item: number) => ({ type: "done", item, key: key(item), files: [], ms: 1 }) as const;
const failed = (item: number) =>
  ({ type: "failed", item, key: key(item), attempt: 1, error: { code: "node.failed", message: "no" } }) as const;

describe("log of a journal", () => {
  const folder = temporaryFolder();
  const path = () => join(folder(), "deep/er/j.jsonl");
  const openAt = (file: string, more: Partial<LogOptions> = {}) =>
    JournalLog.open(file, {
      outputDir: folder(),
      hash: header.graph,
      prefixes: {},
      resume: true,
      partial: false,
      ...more,
    });
  const open = (resume = true) => openAt(path(), { resume });
  const lines = () => readFileSync(path(), "utf8").split("\n");

  it("has the state of earlier runs", async () => {
    const first = await open(false);
    await Promise.all([intent(0), done(0), intent(1), intent(2), failed(2), intent(5000)].map((r) => first.append(r)));
    await first.close();
    const { state, close } = await open().then((journal) => ({ state: journal.state, close: () => journal.close() }));
    assert.deepEqual(
      [0, 1, 2, 3, 5000, 5001, 1e9].map((item) => state.of(item, key(item))),
      ["done", "cut", "cut", "unknown", "cut", "unknown", "unknown"],
    );
    assert.equal(state.of(0, key(7)), "unknown");
    assert.equal(state.finished, 1);
    await close();
    assert.equal(
      lines()[1],
      '{"type": "intent", "item": 0, "key": "0000000000000000", "values": {"a": 18446744073709551616}, "names": {}}',
    );
  });

  it("is durable when append resolves, many records with one fsync", async () => {
    const journal = await open(false);
    let resolved = 0;
    const all = Array.from({ length: 5000 }, (_, item) => journal.append(intent(item)).then(() => resolved++));
    await all[0];
    assert.equal(lines().length, 5002);
    await Promise.all(all);
    assert.equal(resolved, 5000);
    await journal.close();
    const again = await open();
    assert.equal(again.state.of(4999, key(4999)), "cut");
    await again.close();
  });

  it("truncates a line that a kill cut short", async () => {
    const first = await open(false);
    await first.append(done(0));
    await first.close();
    const whole = statSync(path()).size;
    appendFileSync(path(), '{"type": "done", "item": 1, "key": "00');
    const second = await open();
    assert.deepEqual([second.state.of(0, key(0)), second.state.finished, statSync(path()).size], ["done", 1, whole]);
    await second.append(done(1));
    await second.close();
    const third = await open();
    assert.equal(third.state.finished, 2);
    await third.close();
    // a header that was cut short begins anew
    writeFileSync(path(), '{"type": "batch", "ver');
    const fourth = await open(false);
    await fourth.close();
    assert.deepEqual(lines(), [printRecord(fourth.header).trimEnd(), ""]);
    const { id, ...others } = fourth.header;
    assert.match(id, /^[0-9a-f]{12}$/);
    assert.deepEqual(others, { type: "batch", version: 1, engine: packageVersion(), graph: header.graph, first: 1 });
  });

  it("refuses a file of another kind, also one without a line break", async () => {
    mkdirSync(join(folder(), "deep/er"), { recursive: true });
    for (const text of ['{"1": {"class_type": "A"}}', "a note", '{"type": "batc!', " "]) {
      writeFileSync(path(), text);
      for (const resume of [true, false]) await refuses(() => open(resume), "journal.refused", /not a batch journal/);
      assert.equal(readFileSync(path(), "utf8"), text);
    }
    for (const wrong of [{ id: "/../../../evil" }, { first: 0 }, { first: "1" }, { graph: 5 }, { engine: null }]) {
      writeFileSync(path(), `${JSON.stringify({ ...header, ...wrong })}\n`);
      await refuses(() => open(), "journal.refused", /line 1/);
    }
  });

  it("begins anew if another batch has finished nothing", async () => {
    const first = await open(false);
    await Promise.all([intent(0), failed(0)].map((record) => first.append(record)));
    await first.close();
    const other = { hash: "sha256:11" };
    const second = await openAt(path(), other);
    assert.deepEqual(
      [second.header.graph, second.replaced, second.state.of(0, key(0))],
      ["sha256:11", first.header.id, "unknown"],
    );
    await second.append(done(0));
    await second.close();
    await refuses(() => open(), "journal.refused", /a different graph/);
    await refuses(() => openAt(path(), { ...other, resume: false }), "journal.refused", /belongs to an earlier batch/);
  });

  it("refuses damage, naming the line, and changes nothing", async () => {
    for (const [line, damage] of [
      [1, "not JSON"],
      [1, '{"type": "done", "item": 0, "key": "0000000000000000"}'],
      [3, "[]"],
      [3, '{"type": "other"}'],
      [3, '{"type": "done", "item": -1, "key": "0000000000000000"}'],
      [3, '{"type": "done", "item": 0, "key": "zz"}'],
      [3, '{"type": "done", "item": 1e15, "key": "0000000000000000"}'],
      [3, '{"type": "done", "item": 999999999, "key": "0000000000000000"}'],
      [3, "\0\0\0"],
    ] as const) {
      const journal = await openAt(join(folder(), `${damage.length}`));
      await journal.append(done(0));
      await journal.close();
      const before = readFileSync(journal.path, "utf8").split("\n");
      before[line - 1] = damage;
      writeFileSync(journal.path, `${before.slice(0, 2).join("\n")}\n${line === 3 ? `${damage}\n` : ""}`);
      const text = readFileSync(journal.path, "utf8");
      await refuses(() => openAt(journal.path), "journal.refused", new RegExp(`line ${line}`));
      assert.equal(readFileSync(journal.path, "utf8"), text);
    }
  });

  it("reads records longer than its buffer, and refuses endless ones", async () => {
    const journal = await open(false);
    await journal.append({ ...intent(0), values: { text: "é".repeat(200_000) } });
    await journal.append(done(1));
    await journal.close();
    const again = await open();
    assert.deepEqual([again.state.of(0, key(0)), again.state.of(1, key(1))], ["cut", "done"]);
    await again.close();
    writeFileSync(path(), Buffer.alloc(2 ** 26 + 100_000, "x"));
    await refuses(() => open(), "journal.refused", /64 MiB/);
  });

  it("names the reason if a path cannot be opened or written", async () => {
    mkdirSync(path(), { recursive: true });
    await refuses(() => open(), "file.write-failed", /a folder has that name/);
    writeFileSync(join(folder(), "file"), "");
    const below = (name: string) => () => openAt(join(name, "j.jsonl"));
    await refuses(below(join(folder(), "file")), "file.write-failed", /a part of the path is not a folder \(ENOTDIR\)/);
    // where Node's own way of making folders never returns
    if (existsSync("/proc/self"))
      await refuses(below("/proc/none/deep"), "file.write-failed", /does not exist \(ENOENT\)/);
    await refuses(() => openAt("/dev/full"), "journal.refused", /it is not a regular file/);
  });
});

describe("lockFile", () => {
  const folder = temporaryFolder();

  it("refuses a locked file until it is closed", async () => {
    const path = join(folder(), "journal");
    const [first, second] = [await open(path, "a+"), await open(path, "a+")];
    try {
      const unlock = await lockFile(first.fd, path);
      assert.equal(await lockFile(second.fd, path), undefined);
      await first.close();
      await unlock!();
      assert.equal(typeof (await lockFile(second.fd, path)), "function");
    } finally {
      await second.close();
    }
  });

  it("names the file and the system's error if there can be no lock", async function () {
    if (process.platform === "win32") skip(this, "Windows locks the name of a pipe");
    const message = /^Journal j\.jsonl cannot be locked \(EBADF\)\.$/;
    await refuses(() => lockFile(2 ** 30, "j.jsonl"), "file.write-failed", message);
  });
});
