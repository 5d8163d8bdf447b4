import assert from "node:assert/strict";
import type { NewGroup, NewKey, NewRun, Store } from "#src/service/hooks/store/store.js";
import { wakeLimits } from "../../../../helpers/hooks/backlog.js";
import { describeStores } from "../../../../helpers/hooks/hook-stores.js";
import { newRun as runOf } from "../../../../helpers/hooks/new-run.js";

const newRun = (id: string, extra: Parameters<typeof runOf>[1] = {}): NewRun =>
  runOf(id, { sessionKey: `s${id}`, timeoutSeconds: 1, createdAt: 1, createdMark: 1, maxWakeBytes: 1000, ...extra });
const newGroup = (id: string, ...runs: (string | NewRun)[]): NewGroup => ({
  id,
  runs: runs.map((run) => (typeof run === "string" ? newRun(run) : run)),
});
const key: NewKey = { scope: "token group k", payloadHash: "hash", nowMark: 0, expiresMark: 100 };
const end = (store: Store, id: string, endedMark = 50) =>
  store.endRun(
    id,
    { from: ["queued"], to: "cancelled", finishedAt: 1, endedMark, error: null, terminal: { event: "x", data: "1" } },
    { skip: 0, events: [], files: [] },
    { events: 10, bytes: 1000 },
  );
const positions = async (store: Store, id: string, after = 0, most = 100) =>
  (await store.readGroup(id, after, most))!.ends.map(({ position, index, runId }) => [position, index, runId]);

describeStores({ title: "groups of runs" }, (kind) => {
  it("a group creates its runs in order, as single ones, with one reply", async () => {
    const store = kind.create();
    await store.addWake({ sessionKey: "s", text: "up", limits: wakeLimits(9) });
    const b = newRun("b", { sessionKey: "s", tags: ["t"], priority: 3, dueMark: 70 });
    const c = newRun("c", { sessionKey: "s", graph: { name: "g", text: "{}" } });
    const created = await store.createGroup(newGroup("g", "a", b, c), key);
    assert.ok(created.kind === "created");
    assert.deepEqual(created.seqs, [1, 2, 3]);
    const { seq, state, priority, dueMark, tags } = (await store.getSummary("b"))!;
    assert.deepEqual([seq, state, priority, dueMark, tags], [2, "queued", 3, 70, ["t"]]);
    assert.equal((await store.getRun("b"))?.message, "up|message of b");
    assert.equal((await store.getRun("c"))?.message, "message of c");
    assert.equal((await store.getRun("c"))?.graph?.text, "{}");
    assert.deepEqual(
      (await store.listRuns(null, 10, { tag: "t" })).map(({ id }) => id),
      ["b"],
    );
    const group = { groupId: "g", runIds: ["a", "b", "c"], createdAt: 1, createdMark: 1, dueMark: 70 };
    assert.deepEqual((await store.findReply(key.scope, 0))?.reply, { group });
    const again = await store.createGroup(newGroup("h", "d"), key);
    assert.ok(again.kind === "replayed");
    assert.deepEqual([again.stored.payloadHash, again.stored.reply], ["hash", { group }]);
    assert.deepEqual([await store.getRun("d"), await store.readGroup("h", 0, 1)], [null, null]);
  });

  it("a group of which one run cannot be stored leaves nothing", async () => {
    if (kind.name === "memory") return; // it never fails
    const store = kind.create();
    await store.createRun(newRun("b"));
    await assert.rejects(store.createGroup(newGroup("g", "a", "b", "c"), key));
    assert.deepEqual([await store.getRun("a"), await store.getRun("c")], [null, null]);
    assert.deepEqual([await store.readGroup("g", 0, 1), await store.findReply(key.scope, 0)], [null, null]);
    assert.equal((await store.createGroup(newGroup("g", "a", "c"), key)).kind, "created");
  });

  it("ends have positions in their order, over another process", async () => {
    const store = kind.create();
    await store.createGroup(newGroup("g", "a", "b", "c"));
    await store.createRun(newRun("alone"));
    assert.deepEqual(await store.readGroup("g", 0, 9), { size: 3, ended: 0, oldest: 1, ends: [] });
    for (const id of ["c", "alone", "a"]) assert.equal(await end(store, id, 60), true);
    assert.equal(await end(store, "a"), false);
    const again = await kind.reopen(store);
    const ends = [
      { position: 1, index: 2, runId: "c", endedMark: 60 },
      { position: 2, index: 0, runId: "a", endedMark: 60 },
    ];
    assert.deepEqual(await again.readGroup("g", 0, 9), { size: 3, ended: 2, oldest: 1, ends });
    assert.deepEqual(await again.readGroup("g", 1, 9), { size: 3, ended: 2, oldest: 1, ends: ends.slice(1) });
    assert.deepEqual(await positions(again, "g", 0, 1), [[1, 2, "c"]]);
    assert.deepEqual(await positions(again, "g", Number.MAX_SAFE_INTEGER), []);
    await end(again, "b");
    assert.deepEqual(await positions(again, "g", 2), [[3, 1, "b"]]);
    assert.deepEqual(
      [await again.groupOf("b"), await again.groupOf("alone"), await again.groupOf("?")],
      ["g", null, null],
    );
    assert.equal(await again.readGroup("alone", 0, 1), null);
  });

  it("ends that come together have a position each", async () => {
    const store = kind.create();
    const ids = Array.from({ length: 30 }, (_, index) => `r${index}`);
    await store.createGroup(newGroup("g", ...ids));
    await Promise.all(ids.map((id) => end(store, id)));
    const ends = await positions(store, "g");
    assert.deepEqual(
      ends.map(([position]) => position),
      ids.map((_, index) => index + 1),
    );
    assert.deepEqual(ends.map(([, , id]) => id).sort(), [...ids].sort());
  });

  it("a group goes with the last of its runs", async () => {
    const store = kind.create();
    const sweep = (endedBefore: number) =>
      store.sweep({ endedBefore, maxEndedRuns: 1000, maxEndedDeliveries: 1000, nowMark: 1, budget: 1000 });
    await store.createGroup(newGroup("g", "a", "b", "c"));
    for (const [index, id] of ["b", "c", "a"].entries()) await end(store, id, index + 1);
    assert.equal((await sweep(1)).removedRuns, 1);
    const left = (await store.readGroup("g", 0, 9))!;
    assert.deepEqual([left.size, left.ended, left.oldest], [3, 3, 2]);
    assert.deepEqual(await positions(store, "g"), [
      [2, 2, "c"],
      [3, 0, "a"],
    ]);
    assert.equal((await sweep(3)).removedRuns, 2);
    assert.deepEqual([await store.readGroup("g", 0, 9), await store.groupOf("a")], [null, null]);
  });
});
