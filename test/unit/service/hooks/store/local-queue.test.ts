import assert from "node:assert/strict";
import { type WaitingRun, WaitingRuns } from "#src/service/hooks/store/local-queue.js";
import { seededInts } from "../../../../helpers/seeded.js";

const run = (seq: number, sessionKey: string, priority = 0): WaitingRun => ({
  id: `r${seq}`,
  seq,
  sessionKey,
  priority,
});
const always = () => true;
const drain = (waiting: WaitingRuns<WaitingRun>) => {
  const ids: string[] = [];
  for (let next = waiting.takeNext(always); next !== undefined; next = waiting.takeNext(always)) ids.push(next.id);
  return ids;
};

describe("waiting runs", () => {
  it("come by priority, then age, and in order within a session", () => {
    const waiting = new WaitingRuns<WaitingRun>();
    const all = [run(1, "a"), run(2, "a", 9), run(3, "b"), run(4, "c", 5), run(5, "d", -1)];
    for (const entry of [...all].reverse()) waiting.add(entry);
    assert.deepEqual(
      all.map(({ id }) => waiting.positionOf(id)),
      [3, 1, 4, 2, 5],
    );
    assert.equal(waiting.positionOf("none"), 6);
    assert.deepEqual(drain(waiting), ["r4", "r1", "r2", "r3", "r5"]);
    assert.equal(waiting.size, 0);
  });

  it("of a session that is not free are passed over", () => {
    const waiting = new WaitingRuns<WaitingRun>();
    for (const entry of [run(1, "a", 9), run(2, "b")]) waiting.add(entry);
    assert.equal(waiting.takeNext(({ sessionKey }) => sessionKey !== "a")?.id, "r2");
    assert.equal(
      waiting.takeNext(({ sessionKey }) => sessionKey !== "a"),
      undefined,
    );
    assert.equal(waiting.countOf("a"), 1);
  });

  it("of a session whose first one is delayed wait for it", () => {
    const waiting = new WaitingRuns<WaitingRun>();
    waiting.add(run(2, "a"));
    waiting.add(run(1, "a"), true);
    waiting.add(run(3, "b"), true);
    assert.equal(waiting.takeNext(always), undefined);
    waiting.endDelay("r3");
    waiting.endDelay("r3");
    waiting.endDelay("none");
    assert.equal(waiting.takeNext(always)?.id, "r3");
    assert.equal(waiting.take("r1")?.id, "r1");
    assert.deepEqual(drain(waiting), ["r2"]);
  });

  it("come as a naive search finds them, whatever is added and taken", () => {
    const random = seededInts(1);
    const waiting = new WaitingRuns<WaitingRun>();
    let naive: WaitingRun[] = [];
    const first = () =>
      naive
        .filter((one) => !naive.some((other) => other.sessionKey === one.sessionKey && other.seq < one.seq))
        .sort((a, b) => b.priority - a.priority || a.seq - b.seq)[0];
    for (let seq = 1; seq <= 2000; seq++) {
      const entry = run(seq, `s${random(8)}`, random(3));
      waiting.add(entry);
      naive.push(entry);
      if (random(10) < 3) {
        const { id } = naive[random(naive.length)]!;
        assert.equal(waiting.take(id)?.id, id);
        naive = naive.filter((one) => one.id !== id);
      }
      if (random(10) < 6) {
        const next = first();
        assert.equal(waiting.takeNext(always), next);
        naive = naive.filter((one) => one !== next);
        // as a run whose start the store could not take
        if (next !== undefined && random(10) < 2) {
          waiting.add(next);
          naive.push(next);
        }
      }
      assert.equal(waiting.size, naive.length);
    }
  });
});
