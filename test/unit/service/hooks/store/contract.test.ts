import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { RunFilter } from "#src/service/hooks/run.js";
import type { Room } from "#src/service/hooks/store/admission.js";
import { type Ending, type EventBatch, type EventLimits, NO_EVENTS } from "#src/service/hooks/store/queue-store.js";
import type { NewKey, Store } from "#src/service/hooks/store/store.js";
import { wakeLimits } from "../../../../helpers/hooks/backlog.js";
import { claimOf, idsOf, lostRuns, startNext } from "../../../../helpers/hooks/claims.js";
import { describeStores } from "../../../../helpers/hooks/hook-stores.js";
import { newRun } from "../../../../helpers/hooks/new-run.js";

const KEEP: EventLimits = { events: 1000, bytes: 1_000_000 };

const key = (scope: string, extra: Partial<NewKey> = {}): NewKey => ({
  scope,
  payloadHash: "hash",
  nowMark: 0,
  expiresMark: 100,
  ...extra,
});
const deltas = (...texts: string[]): EventBatch => ({
  ...NO_EVENTS,
  events: texts.map((delta) => ({ event: "delta", data: JSON.stringify({ delta }) })),
});
const ending = (extra: Partial<Ending> = {}): Ending => ({
  from: ["running"],
  to: "succeeded",
  finishedAt: 3000,
  endedMark: 50,
  error: null,
  terminal: { event: "done", data: '{"response":"hi"}' },
  ...extra,
});
const next = { dueMark: 7000, event: { event: "retry", data: '{"attempt":2}' } };

async function running(store: Store, id: string): Promise<void> {
  await store.createRun(newRun(id));
  assert.ok(await startNext(store, id));
}
const eventIds = async (store: Store, id: string, after = 0) =>
  (await store.readEvents(id, after, 1000, 1e9))!.events.map((event) => event.id);

describeStores({ title: "store contract" }, (kind) => {
  it("keeps a pause, also when it is opened anew", async () => {
    const store = kind.create();
    assert.equal(await store.isPaused(), false);
    await store.setPaused(true);
    await store.setPaused(true);
    const after = await kind.reopen(store);
    assert.equal(await after.isPaused(), true);
    await after.setPaused(false);
    assert.equal(await after.isPaused(), false);
  });

  it("stores a run from its creation to its end", async () => {
    const store = kind.create();
    const created = await store.createRun(newRun("r1", { name: "CI" }));
    assert.ok(created.kind === "created");
    assert.equal(created.wakes, 0);
    assert.deepEqual(await store.getRun("r1"), {
      id: "r1",
      seq: 1,
      sessionKey: "hook:a",
      chatId: 1,
      origin: "agent",
      name: "CI",
      state: "queued",
      priority: 0,
      dueMark: null,
      deadlineMark: null,
      tags: [],
      attempt: 1,
      message: "message of r1",
      timeoutSeconds: 600,
      createdAt: 1000,
      startedAt: null,
      finishedAt: null,
      oldestEventId: 1,
      lastEventId: 0,
      error: null,
      graph: null,
      promptFacts: null,
      traceparent: null,
    });
    const { message: _, graph: __, traceparent: ___, promptFacts: ____, ...summary } = (await store.getRun("r1"))!;
    assert.equal(created.seq, summary.seq);
    assert.deepEqual(await store.getSummary("r1"), summary);
    const nothing = { progress: null, files: [], fileCount: 0, terminal: null };
    assert.deepEqual(await store.getStatus("r1", 9), { ...summary, ...nothing });
    const row = await startNext(store, "r1");
    assert.equal(row?.state, "running");
    assert.equal(row?.startedAt, 2000);
    assert.equal(await store.terminalEvent("r1"), null);
    assert.equal(await store.append("r1", deltas("a", "b"), KEEP), true);
    assert.equal(await store.endRun("r1", ending(), deltas("c"), KEEP), true);
    const ended = await store.getSummary("r1");
    assert.equal(ended?.state, "succeeded");
    assert.equal(ended?.finishedAt, 3000);
    assert.equal(ended?.lastEventId, 5);
    const slice = (await store.readEvents("r1", 0, 100, 1e6))!;
    assert.deepEqual(
      slice.events.map(({ id, event }) => [id, event]),
      [
        [1, "status"],
        [2, "delta"],
        [3, "delta"],
        [4, "delta"],
        [5, "done"],
      ],
    );
    assert.deepEqual([slice.end, slice.truncated], [true, false]);
    assert.deepEqual(await store.terminalEvent("r1"), { id: 5, event: "done", data: '{"response":"hi"}' });
  });

  it("stores a run's priority, which outlives the process", async () => {
    const store = kind.create();
    for (const [id, priority] of [
      ["low", -100],
      ["high", 100],
      ["none", undefined],
    ] as const) {
      await store.createRun(newRun(id, { priority, sessionKey: id }));
    }
    const after = await kind.reopen(store);
    const priorities = (await after.listRuns(null, 9)).map(({ id, priority }) => [id, priority]);
    assert.deepEqual(Object.fromEntries(priorities), { low: -100, high: 100, none: 0 });
    for (const [id, priority] of [
      ["high", 100],
      ["none", 0],
      ["low", -100],
    ] as const) {
      assert.equal((await startNext(after, id))?.priority, priority);
    }
  });

  it("stores a run's delay, deadline and tags, which outlive the process", async () => {
    const store = kind.create();
    const tags = ["nightly", 'Ärger\'s "tag"', "💥"];
    const created = await store.createRun(newRun("r1", { dueMark: 5000, deadlineMark: 2 ** 41, tags }));
    assert.ok(created.kind === "created");
    const after = await kind.reopen(store);
    const summary = await after.getSummary("r1");
    assert.equal(created.seq, summary?.seq);
    assert.deepEqual([summary?.dueMark, summary?.deadlineMark, summary?.tags], [5000, 2 ** 41, tags]);
    assert.deepEqual(await after.nextMarks(4999), { due: 5000, deadline: 2 ** 41, ready: 5000 });
    assert.deepEqual(await after.claim(claimOf({ nowMark: 4999 })), []);
    const [held] = await after.claim(claimOf({ nowMark: 5000 }));
    assert.deepEqual([held?.run.tags, held?.readyMark], [tags, 5000]);
  });

  it("replies to a repeated key with the delay of the first run", async () => {
    const store = kind.create();
    await store.createRun(newRun("r1", { dueMark: 5000 }), key("k"));
    const again = await store.createRun(newRun("r2"), key("k"));
    assert.ok(again.kind === "replayed" && "run" in again.stored.reply);
    assert.equal(again.stored.reply.run.dueMark, 5000);
  });

  it("lists the runs with a tag, in pages and under other filters, and forgets those of removed runs", async () => {
    const store = kind.create();
    for (let n = 1; n <= 6; n++) {
      const sessionKey = n % 2 === 0 ? "hook:even" : "hook:odd";
      await store.createRun(newRun(`r${n}`, { sessionKey, tags: n === 3 ? ["b"] : ["a", "b"] }));
    }
    const ids = async (before: number | null, limit: number, filter: RunFilter) =>
      (await store.listRuns(before, limit, filter)).map(({ id }) => id);
    assert.deepEqual(await ids(null, 3, { tag: "a" }), ["r6", "r5", "r4"]);
    assert.deepEqual(await ids(4, 3, { tag: "a" }), ["r2", "r1"]);
    assert.deepEqual(await ids(null, 9, { tag: "a", sessionKey: "hook:odd" }), ["r5", "r1"]);
    assert.deepEqual(await ids(null, 9, { tag: "A" }), []);
    await startNext(store, "r1", 1);
    assert.deepEqual(await ids(null, 9, { tag: "b", state: "running" }), ["r1"]);
    await store.endRun("r1", ending({ endedMark: 50 }), NO_EVENTS, KEEP);
    await store.sweep({ endedBefore: 50, maxEndedRuns: 99, maxEndedDeliveries: 1000, nowMark: 50, budget: 100 });
    assert.deepEqual(await ids(null, 9, { tag: "b" }), ["r6", "r5", "r4", "r3", "r2"]);
  });

  it("returns null for an unknown run, whatever its id", async () => {
    const store = kind.create();
    for (const id of ["", "nope", "__proto__", "constructor", "x".repeat(10_000), "'; DROP TABLE runs; --"]) {
      assert.equal(await store.getRun(id), null);
      assert.equal(await store.getSummary(id), null);
      assert.equal(await store.getStatus(id, 9), null);
      assert.equal(await store.readEvents(id, 0, 10, 10), null);
      assert.equal(await store.terminalEvent(id), null);
      assert.equal(await store.getFile(id, "a.png"), null);
      assert.equal(await store.endRun(id, ending(), NO_EVENTS, KEEP), false);
      assert.equal(await store.append(id, deltas("a"), KEEP), false);
      assert.equal(await store.release(id, 1), false);
      assert.equal(await store.retryRun(id, next, NO_EVENTS, KEEP), false);
    }
  });

  it("queues a run for its next attempt, with its last events and without its progress and files", async () => {
    const store = kind.create();
    await running(store, "r1");
    const file = { name: "a.png", path: "/out/a.png", contentType: null };
    const progress = { value: 1, max: 2, node: "3" };
    await store.append("r1", { ...deltas("a"), files: [file], progress }, KEEP);
    assert.equal(await store.retryRun("r1", next, { ...deltas("b"), files: [file], progress }, KEEP), true);
    assert.equal(await store.retryRun("r1", next, NO_EVENTS, KEEP), false);
    assert.equal(await store.append("r1", deltas("late"), KEEP), false);
    const after = await kind.reopen(store);
    const status = (await after.getStatus("r1", 9))!;
    assert.deepEqual(
      [status.state, status.startedAt, status.dueMark, status.attempt, status.progress, status.files, status.fileCount],
      ["queued", null, 7000, 2, null, [], 0],
    );
    assert.equal(await after.getFile("r1", "a.png"), null);
    assert.deepEqual(await after.claim(claimOf({ nowMark: 6999 })), []);
    assert.equal((await startNext(after, "r1", 8000))?.attempt, 2);
    await after.append("r1", { ...NO_EVENTS, files: [{ ...file, path: "/out/2/a.png" }] }, KEEP);
    assert.equal((await after.getStatus("r1", 9))?.fileCount, 1);
    await after.endRun("r1", ending(), NO_EVENTS, KEEP);
    assert.deepEqual(
      (await after.readEvents("r1", 0, 99, 1e6))!.events.map(({ id, event }) => `${id} ${event}`),
      ["1 status", "2 delta", "3 delta", "4 retry", "5 status", "6 done"],
    );
  });

  it("changes a state only from an expected one: one terminal event", async () => {
    const store = kind.create();
    await running(store, "r1");
    assert.equal(await startNext(store, "r1"), null);
    assert.equal(await store.endRun("r1", ending({ from: ["queued"], to: "expired" }), NO_EVENTS, KEEP), false);
    assert.ok(await store.endRun("r1", ending(), NO_EVENTS, KEEP));
    const before = await store.getRun("r1");
    assert.equal(await store.endRun("r1", ending({ to: "cancelled" }), deltas("late"), KEEP), false);
    assert.equal(await store.append("r1", deltas("late"), KEEP), false);
    assert.equal(await store.release("r1", 1), false);
    assert.equal(await startNext(store, "r1"), null);
    assert.deepEqual(await store.getRun("r1"), before);
    assert.deepEqual(await eventIds(store, "r1"), [1, 2]);
  });

  it("stores the error of a failed run", async () => {
    const store = kind.create();
    await running(store, "r1");
    const error = { error: "out of paint", code: "agent_failed" };
    await store.endRun("r1", ending({ to: "failed", error }), NO_EVENTS, KEEP);
    assert.deepEqual((await store.getRun("r1"))?.error, error);
  });

  it("stores hostile text unchanged", async () => {
    const store = kind.create();
    const texts = ["\u0000", "a\u0000b", "\ud800", "\udfff\ud800", "𝕏", "'\"\\", "\n\ndata: x\nevent: done", "\u2028"];
    const hostile = texts.join("/");
    await store.addWake({ sessionKey: "hook:ü'", text: hostile, limits: wakeLimits(5) });
    await store.createRun(newRun("r1", { sessionKey: "hook:ü'", name: hostile, compose: (p) => `${p[0]}${hostile}` }));
    const row = (await store.getRun("r1"))!;
    assert.equal(row.message, hostile + hostile);
    assert.equal(row.name, hostile);
    assert.equal(row.sessionKey, "hook:ü'");
  });

  it("creates a run and takes the pending wakes in one transaction", async () => {
    const store = kind.create();
    const wake = (text: string, sessionKey = "hook:a") => store.addWake({ sessionKey, text, limits: wakeLimits(10) });
    const first = await wake("one");
    assert.deepEqual(first, { kind: "queued", chatId: 1, eventId: 1, pending: 1 });
    assert.deepEqual(await wake("two"), { kind: "queued", chatId: 1, eventId: 2, pending: 2 });
    await wake("other", "hook:b");
    assert.deepEqual(await store.pendingSessions(), ["hook:a", "hook:b"]);
    const created = await store.createRun(newRun("r1"));
    assert.equal(created.kind === "created" && created.wakes, 2);
    assert.equal((await store.getRun("r1"))?.message, "one|two|message of r1");
    assert.deepEqual(await store.pendingSessions(), ["hook:b"]);
    await store.createRun(newRun("r2"));
    assert.equal((await store.getRun("r2"))?.message, "message of r2");
  });

  it("creates nothing without a message, and leaves the wakes", async () => {
    const store = kind.create();
    const empty = await store.createRun(newRun("r1", { compose: () => null }), key("k"));
    assert.deepEqual(empty, { kind: "empty" });
    assert.equal(await store.getRun("r1"), null);
    assert.equal(await store.findReply("k", 0), null);
    await store.addWake({ sessionKey: "hook:a", text: "one", limits: wakeLimits(1) });
    await store.createRun(newRun("r1", { compose: () => null }));
    assert.deepEqual(await store.pendingSessions(), ["hook:a"]);
  });

  it("refuses a wake beyond the limit and stores nothing", async () => {
    const store = kind.create();
    for (const text of ["one", "two"]) await store.addWake({ sessionKey: "hook:a", text, limits: wakeLimits(2) });
    const full = await store.addWake({ sessionKey: "hook:a", text: "three", limits: wakeLimits(2) }, key("k"));
    assert.deepEqual(full, { kind: "full", scope: "session" });
    assert.equal(await store.findReply("k", 0), null);
    assert.equal((await store.addWake({ sessionKey: "hook:b", text: "x", limits: wakeLimits(2) })).kind, "queued");
    assert.deepEqual(await store.addWake({ sessionKey: "hook:c", text: "x", limits: wakeLimits(0) }), {
      kind: "full",
      scope: "session",
    });
  });

  it("refuses a wake beyond the session's bytes; a run frees them", async () => {
    const store = kind.create();
    // nine letters and two quotes; NUL is six bytes of JSON
    const add = (text: string, sessionKey = "hook:a") =>
      store.addWake({ sessionKey, text, limits: wakeLimits(100, { bytes: 30 }) });
    assert.equal((await add("nine char")).kind, "queued");
    assert.equal((await add("nine char")).kind, "queued");
    assert.deepEqual(await add("seven c"), { kind: "full", scope: "session" });
    assert.deepEqual(await add("\u0000\u0000"), { kind: "full", scope: "session" });
    assert.equal((await add("nine char", "hook:b")).kind, "queued");
    assert.equal((await add("six ch")).kind, "queued");
    await store.createRun(newRun("r1"));
    assert.equal((await store.getRun("r1"))?.message, "nine char|nine char|six ch|message of r1");
    assert.deepEqual(await add("x".repeat(29)), { kind: "full", scope: "session" });
    assert.equal((await add("x".repeat(28))).kind, "queued");
  });

  it("refuses a wake beyond the limit of all sessions, also after a restart", async () => {
    let store = kind.create();
    const add = (sessionKey: string, all: { wakes?: number; bytes?: number }) =>
      store.addWake({ sessionKey, text: "12345678", limits: wakeLimits(100, { all }) });
    for (let i = 0; i < 3; i++) assert.equal((await add(`hook:${i}`, { wakes: 3 })).kind, "queued");
    const full = { kind: "full", scope: "service" };
    assert.deepEqual(await add("hook:new", { wakes: 3 }), full);
    store = await kind.reopen(store);
    assert.deepEqual(await add("hook:0", { wakes: 3 }), full);
    assert.deepEqual(await add("hook:0", { bytes: 39 }), full);
    await store.createRun(newRun("r1", { sessionKey: "hook:1" }));
    assert.deepEqual(await add("hook:0", { bytes: 29 }), full);
    assert.equal((await add("hook:0", { bytes: 30 })).kind, "queued");
    assert.deepEqual(await add("hook:1", { wakes: 3 }), full);
  });

  it("a run takes the pending wakes that fit, oldest first", async () => {
    const store = kind.create();
    for (const text of ["long one", "b", "c", "d"]) {
      await store.addWake({ sessionKey: "hook:a", text, limits: wakeLimits(100) });
    }
    const taken: number[] = [];
    for (const [id, maxWakeBytes] of [
      ["r1", 1],
      ["r2", 6],
      ["r3", 6],
      ["r4", 6],
    ] as const) {
      const created = await store.createRun(newRun(id, { maxWakeBytes }));
      taken.push(created.kind === "created" ? created.wakes : -1);
      assert.deepEqual(await store.pendingSessions(), id === "r1" || id === "r2" ? ["hook:a"] : []);
    }
    assert.deepEqual(taken, [1, 2, 1, 0]);
    const messages = await Promise.all(["r1", "r2", "r3"].map(async (id) => (await store.getRun(id))?.message));
    assert.deepEqual(messages, ["long one|message of r1", "b|c|message of r2", "d|message of r3"]);
  });

  it("stores a reply with its run, once", async () => {
    const store = kind.create();
    await store.createRun(newRun("r1"), key("k"));
    const expected = {
      payloadHash: "hash",
      reply: { run: { runId: "r1", sessionKey: "hook:a", createdAt: 1000, createdMark: 900 } },
    };
    const again = await store.createRun(newRun("r2"), key("k", { payloadHash: "other" }));
    assert.equal(again.kind, "replayed");
    const stored = await store.findReply("k", 99);
    assert.deepEqual({ payloadHash: stored?.payloadHash, reply: stored?.reply }, expected);
    assert.equal(await store.getRun("r2"), null);
    const wake = await store.addWake({ sessionKey: "hook:a", text: "x", limits: wakeLimits(9) }, key("k"));
    assert.equal(wake.kind, "replayed");
    assert.deepEqual(await store.pendingSessions(), []);
  });

  it("forgets a reply at its expiry, then the key is free", async () => {
    const store = kind.create();
    await store.createRun(newRun("r1"), key("k"));
    assert.equal(await store.findReply("k", 100), null);
    const again = await store.createRun(newRun("r2"), key("k", { nowMark: 100, expiresMark: 200 }));
    assert.equal(again.kind, "created");
    assert.deepEqual((await store.findReply("k", 150))?.reply, {
      run: { runId: "r2", sessionKey: "hook:a", createdAt: 1000, createdMark: 900 },
    });
  });

  it("stores the reply to a wake", async () => {
    const store = kind.create();
    await store.addWake({ sessionKey: "hook:a", text: "x", limits: wakeLimits(9) }, key("k"));
    const reply = { wake: { sessionKey: "hook:a", chatId: 1, eventId: 1, pending: 1 } };
    assert.deepEqual((await store.findReply("k", 0))?.reply, reply);
  });

  it("lists newest first, in pages", async () => {
    const store = kind.create();
    for (let i = 1; i <= 5; i++) await store.createRun(newRun(`r${i}`));
    const ids = async (before: number | null, limit: number) =>
      (await store.listRuns(before, limit)).map((run) => run.id);
    assert.deepEqual(await ids(null, 2), ["r5", "r4"]);
    assert.deepEqual(await ids(4, 2), ["r3", "r2"]);
    assert.deepEqual(await ids(2, 9), ["r1"]);
    assert.deepEqual(await ids(1, 9), []);
    assert.equal("message" in (await store.listRuns(null, 1))[0]!, false);
  });

  it("filters lists by state, session or both, in pages", async () => {
    const store = kind.create();
    await store.openQueue(12);
    for (let i = 1; i <= 12; i++) await store.createRun(newRun(`r${i}`, { sessionKey: i % 3 === 0 ? "s3" : "s" }));
    for (const i of [1, 2, 3, 4, 5]) await startNext(store, `r${i}`);
    for (const i of [2, 4]) await store.endRun(`r${i}`, ending(), NO_EVENTS, KEEP);
    const ids = async (before: number | null, limit: number, filter: RunFilter) =>
      (await store.listRuns(before, limit, filter)).map((run) => run.id).join(" ");
    assert.equal(await ids(null, 9, { state: "running" }), "r5 r3 r1");
    assert.equal(await ids(5, 9, { state: "running" }), "r3 r1");
    assert.equal(await ids(null, 2, { state: "queued" }), "r12 r11");
    assert.equal(await ids(11, 2, { state: "queued" }), "r10 r9");
    assert.equal(await ids(null, 9, { sessionKey: "s3" }), "r12 r9 r6 r3");
    assert.equal(await ids(9, 1, { sessionKey: "s3" }), "r6");
    assert.equal(await ids(null, 9, { sessionKey: "s3", state: "running" }), "r3");
    assert.equal(await ids(3, 9, { sessionKey: "s3", state: "running" }), "");
    assert.equal(await ids(null, 9, { sessionKey: "s", state: "succeeded" }), "r4 r2");
    assert.equal(await ids(null, 9, { sessionKey: "none" }), "");
    assert.equal(await ids(null, 9, { state: "expired" }), "");
  });

  it("stores progress and files as reported, also over a restart", async () => {
    let store = kind.create();
    await running(store, "r1");
    const files = ["b", "a", "c"].map((name) => ({ name, path: `/out/${name}`, contentType: null }));
    await store.append("r1", { ...NO_EVENTS, files: files.slice(0, 2) }, KEEP);
    await store.append("r1", { ...deltas("x"), progress: { value: 1, max: 20, node: "3" } }, KEEP);
    await store.append("r1", { ...deltas("y"), files: files.slice(2) }, KEEP);
    await store.append("r1", { ...NO_EVENTS, files: [{ ...files[0]!, path: "/out/new" }] }, KEEP);
    store = await kind.reopen(store);
    const all = [{ ...files[0]!, path: "/out/new" }, files[1]!, files[2]!];
    const { progress, fileCount, ...rest } = (await store.getStatus("r1", 2))!;
    assert.deepEqual([progress, fileCount, rest.files], [{ value: 1, max: 20, node: "3" }, 3, all.slice(0, 2)]);
    assert.equal(rest.terminal, null);
    await store.endRun("r1", ending(), { ...deltas("z"), progress: { value: 20, max: 20, node: null } }, KEEP);
    const ended = (await store.getStatus("r1", 9))!;
    assert.deepEqual([ended.progress, ended.files], [{ value: 20, max: 20, node: null }, all]);
    assert.deepEqual([ended.terminal?.event, ended.state], ["done", "succeeded"]);
  });

  it("clears the progress of a requeued run", async () => {
    const store = kind.create();
    await running(store, "r1");
    await store.append("r1", { ...NO_EVENTS, progress: { value: 1, max: 2, node: null } }, KEEP);
    assert.equal(await store.release("r1", 1), true);
    assert.equal((await store.getStatus("r1", 9))?.progress, null);
  });

  it("reads events in bounded slices, at least one", async () => {
    const store = kind.create();
    await running(store, "r1");
    await store.append("r1", deltas(...Array.from({ length: 20 }, () => "x".repeat(88))), KEEP);
    const read = async (after: number, events: number, bytes: number) => {
      const slice = (await store.readEvents("r1", after, events, bytes))!;
      return slice.events.map(({ id }) => id);
    };
    assert.deepEqual(await read(0, 3, 1e6), [1, 2, 3]);
    assert.deepEqual(await read(1, 100, 250), [2, 3]);
    assert.deepEqual(await read(1, 100, 1), [2]);
    assert.deepEqual(await read(20, 100, 1e6), [21]);
    assert.deepEqual(await read(-5, 1, 1e6), [1]);
    for (const after of [21, 22, Number.MAX_SAFE_INTEGER, 2 ** 64, Number.POSITIVE_INFINITY]) {
      const slice = (await store.readEvents("r1", after, 10, 10))!;
      assert.deepEqual([slice.events, slice.end, slice.lastEventId], [[], false, 21]);
    }
  });

  it("end is true only with the terminal event", async () => {
    const store = kind.create();
    await running(store, "r1");
    await store.endRun("r1", ending(), deltas("a"), KEEP);
    assert.equal((await store.readEvents("r1", 0, 2, 1e6))?.end, false);
    assert.equal((await store.readEvents("r1", 2, 2, 1e6))?.end, true);
    assert.equal((await store.readEvents("r1", 3, 2, 1e6))?.end, true);
    assert.equal((await store.readEvents("r1", 99, 2, 1e6))?.end, true);
  });

  it("trims the head beyond the number of events, never the newest", async () => {
    const store = kind.create();
    await running(store, "r1");
    await store.append("r1", deltas("a", "b", "c", "d"), { events: 3, bytes: 1e6 });
    assert.deepEqual(await eventIds(store, "r1"), [3, 4, 5]);
    const slice = (await store.readEvents("r1", 1, 10, 1e6))!;
    assert.deepEqual([slice.truncated, slice.oldestEventId, slice.lastEventId], [true, 3, 5]);
    assert.equal((await store.readEvents("r1", 2, 10, 1e6))?.truncated, false);
    await store.endRun("r1", ending(), deltas("e"), { events: 1, bytes: 1 });
    const row = await store.getSummary("r1");
    assert.deepEqual([row?.oldestEventId, row?.lastEventId], [7, 7]);
    assert.equal((await store.terminalEvent("r1"))?.event, "done");
  });

  it("trims the head beyond the bytes", async () => {
    const store = kind.create();
    await running(store, "r1");
    const hundred = "x".repeat(88);
    for (let i = 0; i < 10; i++) await store.append("r1", deltas(hundred), { events: 1000, bytes: 350 });
    assert.deepEqual(await eventIds(store, "r1"), [9, 10, 11]);
    await store.append("r1", deltas("ü".repeat(500)), { events: 1000, bytes: 350 });
    assert.deepEqual(await eventIds(store, "r1"), [12]);
  });

  it("trims thousands of events at once", async () => {
    const store = kind.create();
    await running(store, "r1");
    const many = deltas(...Array.from({ length: 3000 }, (_, i) => String(i)));
    await store.append("r1", many, { events: 10, bytes: 1e6 });
    assert.deepEqual((await eventIds(store, "r1")).length, 10);
    assert.equal((await store.getRun("r1"))?.oldestEventId, 2992);
  });

  it("counts skipped ids and trims all events before them", async () => {
    const store = kind.create();
    await running(store, "r1");
    await store.append("r1", { ...deltas("z"), skip: 10 }, KEEP);
    assert.deepEqual(await eventIds(store, "r1"), [12]);
    const slice = (await store.readEvents("r1", 1, 10, 1e6))!;
    assert.deepEqual([slice.truncated, slice.oldestEventId], [true, 12]);
    await store.append("r1", { ...NO_EVENTS, skip: 1 }, KEEP);
    const row = await store.getRun("r1");
    assert.deepEqual([row?.oldestEventId, row?.lastEventId], [14, 13]);
  });

  it("stores the files of a run", async () => {
    const store = kind.create();
    await running(store, "r1");
    const file = { name: "fox.png", path: "/out/fox.png", contentType: "image/png" };
    const other = { name: "__proto__", path: "/out/p", contentType: null };
    await store.append("r1", { ...NO_EVENTS, files: [file, other] }, KEEP);
    assert.deepEqual(await store.getFile("r1", "fox.png"), file);
    assert.deepEqual(await store.getFile("r1", "__proto__"), other);
    assert.equal(await store.getFile("r1", "toString"), null);
    await store.append("r1", { ...NO_EVENTS, files: [{ ...file, path: "/out/2.png" }] }, KEEP);
    assert.equal((await store.getFile("r1", "fox.png"))?.path, "/out/2.png");
  });

  it("forgets a file of an ended run, and counts it no more", async () => {
    const store = kind.create();
    await running(store, "r1");
    const files = ["a.png", "b.png"].map((name) => ({ name, path: `/out/${name}`, contentType: null }));
    await store.append("r1", { ...NO_EVENTS, files }, KEEP);
    assert.equal(await store.removeFile("r1", "a.png"), false, "it runs");
    await store.endRun("r1", ending(), NO_EVENTS, KEEP);
    assert.equal(await store.removeFile("r1", "a.png"), true);
    assert.deepEqual(
      [
        await store.removeFile("r1", "a.png"),
        await store.removeFile("r1", "toString"),
        await store.removeFile("?", "b.png"),
      ],
      [false, false, false],
    );
    assert.equal(await store.getFile("r1", "a.png"), null);
    const status = await store.getStatus("r1", 10);
    assert.deepEqual([status?.files, status?.fileCount], [[files[1]], 1]);
  });

  it("starts the runs that a lost process had again, before those behind them", async () => {
    let store = kind.create();
    for (const id of ["r1", "r2", "r3"]) await store.createRun(newRun(id));
    await startNext(store, "r1");
    await store.endRun("r1", ending(), NO_EVENTS, KEEP);
    await store.claim(claimOf({ leaseMs: 1 }));
    store = await kind.reopen(store);
    assert.equal(await store.openQueue(1), 50);
    await sleep(20);
    assert.deepEqual(await store.recoverLost(lostRuns(1)), { requeued: ["r2"], ended: [] });
    assert.deepEqual(await store.recoverLost(lostRuns(1)), { requeued: [], ended: [] });
    assert.equal((await startNext(store, "r2", 5000))?.startedAt, 5000);
    assert.deepEqual(await eventIds(store, "r2"), [1, 2]);
    assert.equal(await startNext(store, "r3"), null);
  });

  it("ends the runs that a lost process had where none is to start again", async () => {
    let store = kind.create();
    for (const id of ["r1", "r2"]) await store.createRun(newRun(id));
    await store.claim(claimOf({ leaseMs: 1 }));
    store = await kind.reopen(store);
    await sleep(20);
    assert.deepEqual(await store.recoverLost(lostRuns(0)), { requeued: [], ended: ["r1"] });
    assert.equal((await store.getSummary("r1"))?.state, "interrupted");
    assert.ok(await startNext(store, "r2"));
  });

  it("refuses what the holder of an earlier start writes", async () => {
    const store = kind.create();
    await running(store, "r1");
    assert.equal(await store.release("r1", 1), true);
    assert.equal(await store.release("r1", 1), false);
    await startNext(store, "r1");
    assert.equal(await store.append("r1", deltas("late"), KEEP, 1), false);
    assert.equal(await store.retryRun("r1", next, NO_EVENTS, KEEP, 1), false);
    assert.equal(await store.endRun("r1", ending(), NO_EVENTS, KEEP, 1), false);
    assert.equal(await store.endRun("r1", ending(), NO_EVENTS, KEEP, 2), true);
  });

  it("starts as many runs of a session at once as it is told, in order, also once that has changed", async () => {
    let store = kind.create();
    await store.openQueue(2);
    for (const id of ["a1", "a2", "a3", "a4"]) await store.createRun(newRun(id, { priority: Number(id[1]) }));
    await store.createRun(newRun("b1", { sessionKey: "hook:b", priority: 9, deadlineMark: 1500 }));
    const claimAll = async () => idsOf(await store.claim(claimOf({ nowMark: 1500 })));
    assert.deepEqual(await claimAll(), ["a1", "a2"]);
    await store.endRun("a2", ending(), NO_EVENTS, KEEP);
    assert.deepEqual(await claimAll(), ["a3"]);
    store = await kind.reopen(store);
    await store.openQueue(3);
    assert.deepEqual(await claimAll(), ["a4"]);
    assert.deepEqual(await store.pastDeadline(1499, 9), []);
    assert.deepEqual(await store.pastDeadline(1500, 9), [{ id: "b1", deadlineMark: 1500 }]);
    assert.equal((await store.countRuns(9)).queued, 1);
  });

  for (const perSession of [1, 2]) {
    it(`starts prompts that go in front before those that wait, ${perSession} of a session at once`, async () => {
      let store = kind.create();
      await store.openQueue(perSession);
      const add = (id: string, priority: number) => store.createRun(newRun(id, { origin: "comfy", priority }));
      const claimAll = async () => idsOf(await store.claim(claimOf({ nowMark: 0 })));
      const next = async (id: string) => {
        await store.endRun(id, ending(), NO_EVENTS, KEEP);
        return claimAll();
      };
      for (const id of ["r1", "r2", "r3"]) await add(id, 0);
      const started = await claimAll();
      assert.deepEqual(started, ["r1", "r2"].slice(0, perSession));
      for (const id of ["f4", "f5"]) await add(id, 1);
      assert.deepEqual(await claimAll(), []);
      assert.deepEqual(await next("r1"), ["f5"]);
      store = await kind.reopen(store);
      await store.openQueue(perSession);
      assert.deepEqual(await claimAll(), []);
      assert.deepEqual(await next("f5"), ["f4"]);
      assert.deepEqual(await next("f4"), [["r2", "r3"][perSession - 1]]);
    });
  }

  it("starts a prompt in front of one that could have started, but has not", async () => {
    const store = kind.create();
    await store.openQueue(1);
    for (const id of ["r1", "f2"])
      await store.createRun(newRun(id, { origin: "comfy", priority: id === "f2" ? 1 : 0 }));
    // the priority of a hook's run leaves its session in order
    for (const id of ["h1", "h2"]) {
      await store.createRun(newRun(id, { sessionKey: "hook:h", priority: id === "h2" ? 1 : 0 }));
    }
    assert.deepEqual(idsOf(await store.claim(claimOf({ nowMark: 0 }))).sort(), ["f2", "h1"]);
    await store.endRun("f2", ending(), NO_EVENTS, KEEP);
    assert.deepEqual(idsOf(await store.claim(claimOf({ nowMark: 0 }))), ["r1"]);
  });

  it("takes in no more runs than there is room for, of a session and in all", async () => {
    const room = { perSession: 1, queuedPerSession: 1, queued: 2, freeSlots: 1, unclaimed: 0, isShared: false };
    const store = kind.create();
    const add = async (id: string, sessionKey: string, extra: Partial<Room> = {}) => {
      const result = await store.createRun(newRun(id, { sessionKey, room: { ...room, ...extra } }));
      return result.kind === "full" ? result.scope : result.kind;
    };
    assert.equal(await add("a1", "a"), "created");
    assert.equal(await add("a2", "a", { unclaimed: 1 }), "created");
    assert.equal(await add("a3", "a", { unclaimed: 1 }), "session");
    assert.equal(await add("b1", "b", { freeSlots: 0, unclaimed: 1, queued: 1 }), "service");
    assert.equal(await add("b1", "b", { queued: 0 }), "created");
    const group = (...sessions: string[]) => ({
      id: sessions.join(),
      runs: sessions.map((sessionKey, n) => newRun(`${sessions.join()}-${n}`, { sessionKey, room })),
    });
    const full = await store.createGroup(group("c", "c", "c"));
    assert.deepEqual(full, { kind: "full", scope: "session" });
    assert.deepEqual(await store.createGroup(group("c", "d", "e", "f")), { kind: "full", scope: "service" });
    assert.equal((await store.listRuns(null, 9)).length, 3);
    assert.equal((await store.createGroup(group("c", "d", "e"))).kind, "created");
  });

  it("replies, wakes, events and files survive a restart", async () => {
    let store = kind.create();
    await running(store, "r1");
    await store.append("r1", { ...deltas("a"), files: [{ name: "f", path: "/f", contentType: null }] }, KEEP);
    await store.addWake({ sessionKey: "hook:a", text: "one", limits: wakeLimits(9) }, key("k"));
    store = await kind.reopen(store);
    assert.deepEqual(await eventIds(store, "r1"), [1, 2]);
    assert.equal((await store.getFile("r1", "f"))?.path, "/f");
    assert.ok(await store.findReply("k", 0));
    assert.deepEqual(await store.pendingSessions(), ["hook:a"]);
    assert.equal((await store.addWake({ sessionKey: "hook:a", text: "two", limits: wakeLimits(9) })).kind, "queued");
    await store.createRun(newRun("r2"));
    assert.equal((await store.getRun("r2"))?.message, "one|two|message of r2");
  });

  describe("sweep", () => {
    const request = { endedBefore: -1, maxEndedRuns: 1000, maxEndedDeliveries: 1000, nowMark: 0, budget: 1000 };
    const endedRun = async (store: Store, id: string, endedMark: number, sessionKey = "hook:a") => {
      await store.createRun(newRun(id, { sessionKey }));
      await startNext(store, id, 1);
      await store.endRun(id, ending({ endedMark }), NO_EVENTS, KEEP);
    };

    it("removes runs that ended long ago, with all their rows", async () => {
      const store = kind.create();
      await endedRun(store, "old", 10);
      await endedRun(store, "young", 20);
      await running(store, "live");
      assert.deepEqual(await store.sweep({ ...request, endedBefore: 10 }), {
        removedRuns: 1,
        endedRuns: 1,
        more: false,
      });
      assert.equal(await store.getRun("old"), null);
      assert.equal(await store.readEvents("old", 0, 1, 1), null);
      assert.ok(await store.getRun("young"));
      assert.ok(await store.getRun("live"));
    });

    it("keeps a number of ended runs, the latest ones", async () => {
      const store = kind.create();
      for (const [id, mark] of [
        ["a", 30],
        ["b", 10],
        ["c", 20],
        ["d", 40],
      ] as const)
        await endedRun(store, id, mark);
      const swept = await store.sweep({ ...request, maxEndedRuns: 2 });
      assert.deepEqual(swept, { removedRuns: 2, endedRuns: 2, more: false });
      assert.deepEqual(
        (await store.listRuns(null, 9)).map(({ id }) => id),
        ["d", "a"],
      );
    });

    it("stops at its budget and reports more", async () => {
      const store = kind.create();
      for (let i = 0; i < 10; i++) await endedRun(store, `r${i}`, i);
      let calls = 0;
      for (let more = true; more; calls++) more = (await store.sweep({ ...request, endedBefore: 99, budget: 6 })).more;
      assert.ok(calls > 2 && calls < 12, `${calls} calls`);
      assert.deepEqual(await store.listRuns(null, 9), []);
    });

    it("removes expired replies", async () => {
      const store = kind.create();
      await store.createRun(newRun("r1"), key("k1", { expiresMark: 100 }));
      await store.createRun(newRun("r2"), key("k2", { expiresMark: 101 }));
      await store.sweep({ ...request, nowMark: 100 });
      // asked for a time before the expiry: the row itself is gone
      assert.equal(await store.findReply("k1", 0), null);
      assert.ok(await store.findReply("k2", 0));
    });

    it("never reuses a chat id", async () => {
      const store = kind.create();
      await endedRun(store, "r1", 10, "hook:x");
      await store.sweep({ ...request, endedBefore: 10 });
      await store.createRun(newRun("r2", { sessionKey: "hook:y" }));
      assert.equal((await store.getRun("r2"))?.chatId, 2);
    });

    it("keeps a session with pending wakes", async () => {
      const store = kind.create();
      await endedRun(store, "r1", 10);
      await store.addWake({ sessionKey: "hook:a", text: "x", limits: wakeLimits(9) });
      await store.sweep({ ...request, endedBefore: 10 });
      assert.deepEqual(await store.pendingSessions(), ["hook:a"]);
      await store.createRun(newRun("r2"));
      assert.equal((await store.getRun("r2"))?.chatId, 1);
    });
  });

  it("passes a ping", async () => {
    const store = kind.create();
    await store.ping();
    await store.ping();
  });
});
