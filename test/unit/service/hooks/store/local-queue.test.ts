import assert from "node:assert/strict";
import { LocalQueue, type QueuedRun } from "#src/service/hooks/store/local-queue.js";
import { seededInts } from "../../../../helpers/seeded.js";

const run = (seq: number, sessionKey: string, priority = 0, dueMark: number | null = null): QueuedRun => {
  const place = { seq, sessionKey, priority, dueMark, isDelayed: dueMark !== null, readyMark: dueMark ?? 0 };
  return { id: `r${seq}`, origin: "agent", deadlineMark: null, hasStarted: false, token: 0, worker: null, ...place };
};
const takeNext = (queue: LocalQueue, nowMark = 0) =>
  queue.take({ worker: "w", count: 1, takesBatches: true, nowMark })[0];
/** Ids of the runs in the order of their starts, each of which ends before the next one starts. */
const drain = (queue: LocalQueue) => {
  const ids: string[] = [];
  for (let next = takeNext(queue); next !== undefined; next = takeNext(queue)) {
    ids.push(next.id);
    queue.end(next.id);
  }
  return ids;
};
const queuedOf = async (queue: LocalQueue) => (await queue.reads().countRuns(10_000)).queued;

describe("waiting runs", () => {
  it("come by priority, then age, and in order within a session", async () => {
    const queue = new LocalQueue();
    const all = [run(1, "a"), run(2, "a", 9), run(3, "b"), run(4, "c", 5), run(5, "d", -1)];
    for (const entry of [...all].reverse()) queue.add(entry);
    const { positionOf } = queue.reads();
    assert.deepEqual(await Promise.all(all.map(({ id }) => positionOf(id, 100))), [3, 1, 4, 2, 5]);
    assert.equal(await positionOf("none", 100), 6);
    assert.equal(await positionOf("r5", 2), 3);
    assert.deepEqual(drain(queue), ["r4", "r1", "r2", "r3", "r5"]);
    assert.equal(await queuedOf(queue), 0);
  });

  it("of a session that is not free are passed over", async () => {
    const queue = new LocalQueue();
    for (const entry of [run(1, "a", 9), run(2, "a", 9), run(3, "b")]) queue.add(entry);
    assert.equal(takeNext(queue)?.id, "r1");
    assert.equal(takeNext(queue)?.id, "r3");
    assert.equal(takeNext(queue), undefined);
    assert.equal(await queuedOf(queue), 1);
  });

  it("of a session whose first one is delayed wait for it", () => {
    const queue = new LocalQueue();
    for (const entry of [run(2, "a"), run(1, "a", 0, 20), run(3, "b", 0, 10)]) queue.add(entry);
    assert.equal(takeNext(queue, 9), undefined);
    assert.equal(takeNext(queue, 10)?.id, "r3");
    assert.equal(takeNext(queue, 19), undefined);
    queue.end("r1");
    assert.deepEqual(drain(queue), ["r2"]);
  });

  it("come as a naive search finds them, whatever is added and taken", async () => {
    const random = seededInts(1);
    const queue = new LocalQueue();
    let naive: QueuedRun[] = [];
    const first = () =>
      naive
        .filter((one) => !naive.some((other) => other.sessionKey === one.sessionKey && other.seq < one.seq))
        .sort((a, b) => b.priority - a.priority || a.seq - b.seq)[0];
    for (let seq = 1; seq <= 2000; seq++) {
      const entry = run(seq, `s${random(8)}`, random(3));
      queue.add(entry);
      naive.push(entry);
      if (random(10) < 3) {
        const { id } = naive[random(naive.length)]!;
        queue.end(id);
        naive = naive.filter((one) => one.id !== id);
      }
      if (random(10) < 6) {
        const next = first();
        assert.equal(takeNext(queue), next);
        // its start could not be stored, or it has ended
        if (next !== undefined && random(10) < 2) queue.putBack(next.id);
        else if (next !== undefined) {
          queue.end(next.id);
          naive = naive.filter((one) => one !== next);
        }
      }
      assert.equal(await queuedOf(queue), naive.length);
    }
  });
});
