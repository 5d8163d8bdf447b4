import assert from "node:assert/strict";
import type { NewRun, Store } from "#src/service/hooks/store/store.js";
import { startNext } from "../../../../helpers/hooks/claims.js";
import { describeStores } from "../../../../helpers/hooks/hook-stores.js";
import { newRun as runOf } from "../../../../helpers/hooks/new-run.js";

const newRun = (id: string, graph: NewRun["graph"], extra: Parameters<typeof runOf>[1] = {}): NewRun =>
  runOf(id, { sessionKey: `s${id}`, createdAt: 1, createdMark: 1, graph, ...extra });
const kept = { events: 10, bytes: 1000 };
const nothing = { skip: 0, events: [], files: [] };
const end = (store: Store, id: string, endedMark: number) =>
  store.endRun(
    id,
    { from: ["queued"], to: "cancelled", finishedAt: 1, endedMark, error: null, terminal: { event: "x", data: "1" } },
    nothing,
    kept,
  );
const sweep = (store: Store, endedBefore: number) =>
  store.sweep({ endedBefore, maxEndedRuns: 1000, maxEndedDeliveries: 1000, nowMark: 1, budget: 1000 });
const text = '{"1":{"class_type":"é \\u0000","seed":18446744073709551615}}';

describeStores({ title: "graphs of runs" }, (kind) => {
  it("a run keeps its graph, over a start and another process", async () => {
    const store = kind.create();
    await store.createRun(newRun("a", { name: "portrait", text }));
    await store.createRun(newRun("b", { name: null, text }));
    await store.createRun(newRun("c", null));
    assert.deepEqual((await startNext(store, "a"))?.graph, { name: "portrait", text });
    const again = await kind.reopen(store);
    assert.deepEqual((await again.getRun("a"))?.graph, { name: "portrait", text });
    assert.deepEqual((await again.getRun("b"))?.graph, { name: null, text });
    assert.equal((await again.getRun("c"))?.graph, null);
  });

  it("a run keeps the trace of its request", async () => {
    const store = kind.create();
    const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
    await store.createRun(newRun("a", null, { traceparent }));
    await store.createRun(newRun("b", null));
    assert.equal((await startNext(store, "a"))?.traceparent, traceparent);
    const again = await kind.reopen(store);
    assert.deepEqual(
      [(await again.getRun("a"))?.traceparent, (await again.getRun("b"))?.traceparent],
      [traceparent, null],
    );
  });

  it("a run keeps the facts of its prompt, in a group too", async () => {
    const store = kind.create();
    const promptFacts = '{"clientId": "é \\u0000", "seed": 18446744073709551615}';
    await store.createRun(newRun("a", null, { promptFacts }));
    await store.createRun(newRun("b", null));
    await store.createGroup({ id: "g", runs: [newRun("c", null), newRun("d", null, { promptFacts })] });
    assert.equal((await startNext(store, "a"))?.promptFacts, promptFacts);
    const again = await kind.reopen(store);
    const kept = await Promise.all(["a", "b", "c", "d"].map(async (id) => (await again.getRun(id))?.promptFacts));
    assert.deepEqual(kept, [promptFacts, null, null, promptFacts]);
  });

  it("a graph stays as long as one of its runs", async () => {
    const store = kind.create();
    for (const id of ["a", "b"]) await store.createRun(newRun(id, { name: "g", text }));
    await end(store, "a", 1);
    assert.equal((await sweep(store, 1)).removedRuns, 1);
    assert.equal((await store.getRun("b"))?.graph?.text, text);
    await end(store, "b", 2);
    assert.equal((await sweep(store, 2)).removedRuns, 1);
    await store.createRun(newRun("c", { name: "g", text }));
    assert.equal((await store.getRun("c"))?.graph?.text, text);
  });

  it("runs that are created while the last one of their graph is removed have it", async () => {
    const store = kind.create();
    for (let round = 0; round < 20; round++) {
      const ids = Array.from({ length: 5 }, (_, i) => `${round}-${i}`);
      await Promise.all([...ids.map((id) => store.createRun(newRun(id, { name: "g", text }))), sweep(store, round)]);
      for (const id of ids) assert.equal((await store.getRun(id))?.graph?.text, text);
      await Promise.all(ids.map((id) => end(store, id, round)));
    }
  });
});
