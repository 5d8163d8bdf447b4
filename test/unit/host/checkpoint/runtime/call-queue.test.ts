import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { CallQueue, type Turn } from "#src/host/checkpoint/runtime/call-queue.js";
import type { Place } from "#src/host/checkpoint/session/runtime.js";
import { refuses, rejectsAs } from "../../../../helpers/errors.js";

/** A queue, what it has told, and work that ends when the test says so. */
function make(options: { patienceMs?: number; mostWaiting?: number } = {}) {
  const told: string[] = [];
  const ends: (() => void)[] = [];
  const turns: Turn[] = [];
  const queue = new CallQueue({
    onStuck: () => told.push("stuck"),
    onWanted: (isWanted) => told.push(isWanted ? "wanted" : "idle"),
    ...options,
  });
  const call = (name: string, signal?: AbortSignal, place?: Place) =>
    queue.add(
      signal,
      (turn) => {
        told.push(name);
        turns.push(turn);
        return new Promise<string>((resolve) => ends.push(() => resolve(`${name} done`)));
      },
      place,
    );
  return { queue, told, ends, turns, call };
}

/** Ends what runs until nothing does. */
async function endAll(ends: (() => void)[]): Promise<void> {
  for (let end = ends.shift(); end !== undefined; end = ends.shift()) {
    end();
    await sleep(1);
  }
}

describe("CallQueue", () => {
  it("does one call after the other, first come first served", async () => {
    const { told, ends, call } = make();
    const results = [call("a"), call("b"), call("c")];
    for (const expected of [["wanted", "a"], ["b"], ["c"]]) {
      assert.deepEqual(told.splice(0), expected);
      ends.shift()!();
      await sleep(1);
    }
    assert.deepEqual(await Promise.all(results), ["a done", "b done", "c done"]);
    assert.deepEqual(told, ["idle"]);
  });

  it("lets runs of one rank take turns, the one first that has waited longest", async () => {
    const { told, ends, call } = make();
    const from = (run: string, name: string) => call(name, undefined, { run, rank: 0 });
    const all = [from("a", "a1"), from("a", "a2"), from("a", "a3"), from("b", "b1"), from("b", "b2"), from("c", "c1")];
    await endAll(ends);
    await Promise.all(all);
    assert.deepEqual(told, ["wanted", "a1", "b1", "c1", "a2", "b2", "a3", "idle"]);
  });

  it("does calls of a lower rank first, in any order of arrival", async () => {
    const { told, ends, call } = make();
    const item = (rank: number, name: string) => call(name, undefined, { run: String(rank), rank });
    const all = [item(2, "2a"), item(2, "2b"), item(1, "1a"), item(0, "0a"), item(1, "1b")];
    for (let left = all.length; left > 0; left--) {
      while (ends.length === 0) await sleep(1);
      ends.shift()!();
    }
    await Promise.all(all);
    assert.deepEqual(told, ["wanted", "2a", "0a", "1a", "1b", "2b", "idle"]);
  });

  it("keeps younger items back for a moment after a call of an older one, whose next call follows", async () => {
    const { told, ends, call } = make();
    const item = (rank: number, name: string) => call(name, undefined, { run: String(rank), rank });
    const first = item(0, "0a");
    const younger = item(1, "1a");
    ends.shift()!();
    // the older item's next call comes once it has the result
    const second = first.then(() => item(0, "0b"));
    await first;
    await sleep(0);
    assert.deepEqual(told, ["wanted", "0a", "0b"]);
    ends.shift()!();
    await second;
    while (ends.length === 0) await sleep(1);
    ends.shift()!();
    await younger;
    assert.deepEqual(told, ["wanted", "0a", "0b", "1a", "idle"]);
  });

  it("keeps younger items back no longer when the older one is over", async () => {
    const { queue, told, ends, call } = make();
    const first = call("0a", undefined, { run: "0", rank: 0 });
    const younger = call("1a", undefined, { run: "1", rank: 1 });
    ends.shift()!();
    await first;
    queue.forget("another");
    assert.deepEqual(told, ["wanted", "0a"]);
    queue.forget("0");
    assert.deepEqual(told, ["wanted", "0a", "1a"]);
    ends.shift()!();
    await younger;
  });

  it("goes on after work that fails or throws", async () => {
    const { queue } = make();
    await assert.rejects(
      queue.add(undefined, async () => {
        throw new Error("no");
      }),
      /no/,
    );
    assert.equal(await queue.add(undefined, async () => 5), 5);
  });

  it("rejects an aborted call that waits, and never begins it", async () => {
    const { told, ends, call } = make();
    const abort = new AbortController();
    const first = call("a");
    const second = call("b", abort.signal);
    abort.abort();
    await rejectsAs(abort.signal, second);
    ends[0]!();
    await first;
    assert.deepEqual(told, ["wanted", "a", "idle"]);
  });

  it("rejects an aborted call at once, and the next one waits until its work has ended", async () => {
    const { told, ends, turns, call } = make({ patienceMs: 10_000 });
    const abort = new AbortController();
    const first = call("a", abort.signal);
    abort.abort();
    await rejectsAs(abort.signal, first);
    assert.equal(turns[0]!.isAbandoned, true);
    const second = call("b");
    await sleep(5);
    assert.deepEqual(told, ["wanted", "a", "idle", "wanted"]);
    ends[0]!();
    await sleep(1);
    ends[1]!();
    assert.equal(await second, "b done");
  });

  it("tells when abandoned work holds up another call for longer than its patience", async () => {
    const { told, ends, call } = make({ patienceMs: 20 });
    const abort = new AbortController();
    const first = call("a", abort.signal);
    abort.abort();
    await rejectsAs(abort.signal, first);
    await sleep(60);
    assert.ok(!told.includes("stuck"));
    const second = call("b");
    await sleep(60);
    assert.equal(told.filter((text) => text === "stuck").length, 1);
    ends[0]!();
    await sleep(1);
    ends[1]!();
    await second;
  });

  it("rejects a call of an aborted signal without work", async () => {
    const { told, call } = make();
    const signal = AbortSignal.abort();
    await rejectsAs(signal, call("a", signal));
    assert.deepEqual(told, []);
  });

  it("refuses a call when too many wait", async () => {
    const { ends, call } = make({ mostWaiting: 1 });
    const [first, second] = [call("a"), call("b")];
    await refuses(call("c"), "runtime.failed", /busy: 1 calls are already waiting/);
    ends[0]!();
    await first;
    ends[1]!();
    await second;
  });

  it("interrupts all calls when it is cleared", async () => {
    const { queue, told, call } = make();
    const all = [call("a"), call("b"), call("c")];
    queue.clear();
    for (const one of all) await refuses(one, "run.interrupted");
    assert.deepEqual(told, ["wanted", "a", "idle"]);
    assert.equal(queue.isWanted, false);
  });
});
