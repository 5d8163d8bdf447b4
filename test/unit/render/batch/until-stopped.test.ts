import assert from "node:assert/strict";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { untilStopped } from "#src/render/batch/until-stopped.js";

async function* count(to: number) {
  for (let i = 0; i < to; i++) yield i;
}

describe("untilStopped", () => {
  const collect = async (items: AsyncIterable<number>, signal?: AbortSignal, onItem = (_: number) => {}) => {
    const seen: number[] = [];
    let isStopped = false;
    const onStop = () => {
      isStopped = true;
    };
    for await (const item of untilStopped(items, { signal }, onStop)) {
      seen.push(item);
      onItem(item);
    }
    return [seen, isStopped];
  };

  it("hands on all items, and what the source throws", async () => {
    assert.deepEqual(await collect(count(3)), [[0, 1, 2], false]);
    async function* broken() {
      yield 1;
      throw new RangeError("broken");
    }
    await assert.rejects(collect(broken()), /broken/);
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
    const seen = await collect(closed(), between.signal, (item) => {
      if (item === 1) between.abort();
    });
    assert.deepEqual(seen, [[0, 1], true]);
    // nobody waits for it to close
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(isClosed, true);
    const waiting = new AbortController();
    async function* stalls() {
      yield 0;
      await new Promise(() => {});
    }
    setTimeout(() => waiting.abort(), 20);
    assert.deepEqual(await collect(stalls(), waiting.signal), [[0], true]);
  });

  it("keeps nothing of the items that are past", async function () {
    this.timeout(60_000);
    setFlagsFromString("--expose-gc");
    const collectGarbage = runInNewContext("gc") as () => void;
    const heap = () => {
      collectGarbage();
      return process.memoryUsage().heapUsed;
    };
    let early = 0;
    let late = 0;
    for await (const item of untilStopped(count(200_001), { signal: new AbortController().signal }, () => {})) {
      if (item === 20_000) early = heap();
      if (item === 200_000) late = heap();
    }
    assert.ok(late - early < 5e6, `${early} bytes of heap, later ${late}`);
  });
});
