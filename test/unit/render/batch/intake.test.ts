import assert from "node:assert/strict";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { NumberLiteral } from "#src/io/json/lossless.js";
import { Intake } from "#src/render/batch/intake.js";
import { Journal } from "#src/render/batch/journal/journal.js";
import type { BatchItem, ItemValues } from "#src/render/items/item.js";
import { createSeedDraw } from "#src/render/items/seeds.js";
import { temporaryFolder } from "../../../helpers/folders.js";
import { seededKeys } from "../../../helpers/items/items.js";

async function* count(to: number): AsyncGenerator<BatchItem> {
  for (let n = 0; n < to; n++) yield { values: { n } };
}

describe("intake of a batch", () => {
  const folder = temporaryFolder();
  const openJournal = (more: { journal?: string; resume?: boolean } = {}) =>
    Journal.open({ resume: false, partial: false, outputDir: folder(), hash: "sha256:00", prefixes: {}, ...more });
  const { seedsOf } = createSeedDraw(seededKeys(), {});
  const collect = async (items: AsyncIterable<BatchItem>, signal?: AbortSignal, onItem = (_: unknown) => {}) => {
    const intake = new Intake(items, await openJournal(), seedsOf, [undefined, signal]);
    const numbers: unknown[] = [];
    try {
      for (let read = await intake.next(); read !== undefined; read = await intake.next()) {
        assert.equal(read.index, numbers.length);
        numbers.push(read.item.values.n);
        onItem(read.item.values.n);
      }
    } finally {
      intake.close();
    }
    return [numbers, intake.isCut];
  };

  it("numbers all items, and throws what the source throws", async () => {
    assert.deepEqual(await collect(count(3)), [[0, 1, 2], false]);
    async function* broken(): AsyncGenerator<BatchItem> {
      yield { values: {} };
      throw new RangeError("broken");
    }
    await assert.rejects(collect(broken()), /broken/);
  });

  it("lists the keys whose values the item before did not have, by their JSON", async () => {
    const items: ItemValues[] = [
      { a: 1, b: [1], c: 2n ** 64n },
      { a: 1, b: [1], c: 2n ** 64n },
      { a: new NumberLiteral("1.0"), b: [2], c: 2n ** 64n, d: null },
      { d: null },
      { a: 1, d: null },
    ];
    async function* source(): AsyncGenerator<BatchItem> {
      for (const values of items) yield { values };
    }
    const intake = new Intake(source(), await openJournal(), seedsOf, []);
    const passing: (readonly string[])[] = [];
    for (let read = await intake.next(); read !== undefined; read = await intake.next()) passing.push(read.passing);
    assert.deepEqual(passing, [["a", "b", "c"], [], ["a", "b", "d"], [], ["a"]]);
  });

  it("finds what an earlier run has finished, and draws its seeds again", async () => {
    async function* source(...texts: string[]): AsyncGenerator<BatchItem> {
      for (const text of texts) yield { values: { "6.text": text, "5.seed": "random" } };
    }
    const path = join(folder(), "batch.jsonl");
    const journal = await openJournal({ journal: path });
    const first = new Intake(source("a fox"), journal, seedsOf, []);
    const { item, entry } = (await first.next())!;
    assert.equal(entry.finished, undefined);
    await journal.done(entry, { files: [], leftOut: [] }, 1);
    await journal.close();
    const resumed = await openJournal({ journal: path, resume: true });
    try {
      // the position is found by the item, wherever it stands now
      const intake = new Intake(source("a hare", "a fox"), resumed, seedsOf, []);
      const [added, again] = [(await intake.next())!, (await intake.next())!];
      assert.deepEqual([added.entry.position, added.entry.finished], [1, undefined]);
      assert.deepEqual([again.entry.position, again.entry.finished], [0, []]);
      assert.deepEqual(again.item.values, item.values);
      assert.notEqual(added.item.values["5.seed"], item.values["5.seed"]);
      assert.deepEqual(again.passing, ["6.text", "5.seed"]);
    } finally {
      await resumed.close();
    }
  });

  it("closes the source where the journal cannot be read", async () => {
    let isClosed = false;
    async function* closed() {
      try {
        yield* count(2);
      } finally {
        isClosed = true;
      }
    }
    const journal = await openJournal();
    const failure = new RangeError("no journal");
    journal.find = () => Promise.reject(failure);
    const intake = new Intake(closed(), journal, seedsOf, []);
    await assert.rejects(intake.next(), failure);
    intake.close();
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(isClosed, true);
  });

  it("ends at a signal, before, between and while it waits, and closes the source", async () => {
    assert.deepEqual(await collect(count(3), AbortSignal.abort()), [[], true]);
    const between = new AbortController();
    let isClosed = false;
    async function* closed() {
      try {
        yield* count(5);
      } finally {
        isClosed = true;
      }
    }
    const read = await collect(closed(), between.signal, (item) => {
      if (item === 1) between.abort();
    });
    assert.deepEqual(read, [[0, 1], true]);
    // its close is not awaited
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(isClosed, true);
    const waiting = new AbortController();
    async function* stalls() {
      yield* count(1);
      await new Promise(() => {});
    }
    setTimeout(() => waiting.abort(), 20);
    assert.deepEqual(await collect(stalls(), waiting.signal), [[0], true]);
  });

  it("keeps no memory of the items that are past", async () => {
    setFlagsFromString("--expose-gc");
    const collectGarbage = runInNewContext("gc") as () => void;
    const heap = () => {
      collectGarbage();
      return process.memoryUsage().heapUsed;
    };
    let early = 0;
    let late = 0;
    const intake = new Intake(count(200_001), await openJournal(), seedsOf, [new AbortController().signal]);
    for (let read = await intake.next(); read !== undefined; read = await intake.next()) {
      if (read.index === 20_000) early = heap();
      if (read.index === 200_000) late = heap();
    }
    assert.ok(late - early < 5e6, `${early} bytes of heap, later ${late}`);
  });
});
