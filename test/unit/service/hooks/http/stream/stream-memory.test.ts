import assert from "node:assert/strict";
import {
  type EncodedSlice,
  type ReadEvents,
  SliceSource,
  StreamMemory,
} from "#src/service/hooks/http/stream/stream-memory.js";
import { Turns } from "#src/service/hooks/http/stream/stream-writer.js";

const slice = (size: number): EncodedSlice => ({ bytes: Buffer.alloc(size), firstId: 1, lastId: 1, isEnd: false });

function reader(memory: StreamMemory) {
  const holder = {
    isCut: false,
    cut() {
      holder.isCut = true;
    },
  };
  return Object.assign(holder, {
    take: (key: string, size = 100) => {
      const shared = memory.get(key) ?? slice(size);
      if (memory.get(key) === undefined) memory.add(key, shared);
      memory.hold(holder, shared);
      return shared;
    },
  });
}

describe("stream memory", () => {
  it("counts a slice once for all readers, caches it while there is room", () => {
    const memory = new StreamMemory(800);
    const readers = Array.from({ length: 50 }, () => reader(memory));
    const slices = readers.map(({ take }) => take("a"));
    assert.equal(new Set(slices).size, 1);
    assert.equal(memory.bytes, 100);
    for (const each of readers) memory.moved(each, slices[0]!);
    assert.equal(memory.get("a"), slices[0]);
    memory.clear();
    assert.deepEqual([memory.get("a"), memory.bytes], [undefined, 0]);
  });

  it("drops slices without a holder first, least recently used first", () => {
    const memory = new StreamMemory(1600);
    const one = reader(memory);
    for (const key of ["a", "b", "c"]) memory.moved(one, one.take(key));
    assert.deepEqual(
      ["a", "b", "c"].map((key) => memory.get(key) !== undefined),
      [false, true, true],
    );
    assert.equal(one.isCut, false);
  });

  it("over its limit it cuts the reader without progress for longest", () => {
    const memory = new StreamMemory(300);
    const [slow, moving, third, last] = [reader(memory), reader(memory), reader(memory), reader(memory)];
    slow.take("a");
    const first = moving.take("b");
    third.take("c");
    moving.take("d", 0);
    memory.moved(moving, first);
    last.take("e");
    assert.deepEqual(
      [slow, moving, third, last].map(({ isCut }) => isCut),
      [false, false, false, false],
    );
    last.take("f");
    assert.deepEqual(
      [slow, moving, third, last].map(({ isCut }) => isCut),
      [true, false, false, false],
    );
    last.take("g", 1000);
    assert.deepEqual(
      [slow, moving, third, last].map(({ isCut }) => isCut),
      [true, true, true, false],
    );
    for (const each of [slow, moving, third, last]) memory.leave(each);
    memory.clear();
    assert.equal(memory.bytes, 0);
  });

  it("1,000 stalled readers stay within the limit", () => {
    const memory = new StreamMemory(1_000_000);
    const readers = Array.from({ length: 1000 }, () => reader(memory));
    for (let round = 0; round < 5; round++) {
      for (const [i, each] of readers.entries()) {
        if (!each.isCut) each.take(`${i} ${round}`, 1000);
        assert.ok(memory.bytes <= 1_000_000, `${memory.bytes}`);
      }
    }
  });
});

describe("slice source", () => {
  const events = (after: number, count: number) =>
    Array.from({ length: count }, (_, i) => ({ id: after + i + 1, event: "delta", data: "{}" }));

  it("reads once for all readers at one id, concurrent or later", async () => {
    let reads = 0;
    const read: ReadEvents = async (_run, after) => {
      reads += 1;
      return { events: events(after, 2), firstId: after + 1, end: false };
    };
    const source = new SliceSource(read, new StreamMemory(1e6));
    const slices = await Promise.all(Array.from({ length: 20 }, () => source.after("run", 4, "")));
    assert.equal(new Set([...slices, await source.after("run", 4, "")]).size, 1);
    assert.equal(reads, 1);
    assert.equal(slices[0]!.bytes.toString(), "id: 5\nevent: delta\ndata: {}\n\nid: 6\nevent: delta\ndata: {}\n\n");
    await source.after("other", 4, "");
    assert.equal(reads, 2);
  });

  it("does not reuse another reader's older empty result", async () => {
    const resolvers: ((slice: Awaited<ReturnType<ReadEvents>>) => void)[] = [];
    const read: ReadEvents = () => new Promise((resolve) => resolvers.push(resolve));
    const source = new SliceSource(read, new StreamMemory(1e6));
    const first = source.after("run", 4, "");
    const second = source.after("run", 4, "");
    const state = { firstId: 5, end: false };
    resolvers[0]!({ ...state, events: [] });
    assert.equal(await first, undefined);
    while (resolvers.length < 2) await new Promise((resolve) => setImmediate(resolve));
    resolvers[1]!({ ...state, events: events(4, 1) });
    assert.equal((await second)?.lastId, 5);
  });
});

describe("turns", () => {
  it("resume one waiter in each turn of the event loop, in order", async () => {
    const turns = new Turns();
    const done: number[] = [];
    for (const i of [1, 2, 3]) turns.next().then(() => done.push(i));
    for (const expected of [[1], [1, 2], [1, 2, 3]]) {
      await new Promise((resolve) => setImmediate(resolve));
      await Promise.resolve();
      assert.deepEqual(done, expected);
    }
  });
});
