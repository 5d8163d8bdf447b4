import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createPostgresStore, type PostgresStore } from "#src/service/hooks/store/postgres/postgres-store.js";
import {
  type Claim,
  type Ending,
  type EventBatch,
  type EventLimits,
  type HeldRun,
  type LostRunPolicy,
  NO_EVENTS,
} from "#src/service/hooks/store/queue-store.js";
import { newRun } from "../../../../../helpers/hooks/new-run.js";
import { newSchema, postgres } from "../../../../../helpers/postgres/cluster.js";

const WORKER = fileURLToPath(new URL("../../../../../helpers/postgres/worker.js", import.meta.url));
const KEEP: EventLimits = { events: 1000, bytes: 1_000_000 };
const LONG_MS = 60_000;
const SHORT_MS = 30;

const ending = (extra: Partial<Ending> = {}): Ending => ({
  from: ["running"],
  to: "succeeded",
  finishedAt: 1,
  endedMark: 1,
  error: null,
  terminal: { event: "done", data: "{}" },
  ...extra,
});
const error = { error: "the worker was lost", code: "interrupted" };
const policy = (requeues: number): LostRunPolicy => {
  const { from: _, ...lost } = ending({ to: "interrupted", error, terminal: { event: "error", data: "{}" } });
  return { worker: "w", requeues, ending: lost, limits: KEEP, count: 100 };
};
const claim = (worker: string, extra: Partial<Claim> = {}): Claim => ({
  worker,
  count: 100,
  takesBatches: true,
  leaseMs: LONG_MS,
  startedAt: 1,
  nowMark: Date.now(),
  event: { event: "status", data: "{}" },
  ...extra,
});
const delta = (text: string): EventBatch => ({
  ...NO_EVENTS,
  events: [{ event: "delta", data: JSON.stringify(text) }],
});
const idsOf = (held: readonly HeldRun[]) => held.map(({ run }) => run.id);

describe("leases of the PostgreSQL store", () => {
  const url = postgres();
  const open: PostgresStore[] = [];
  let schema = "";
  const create = (): PostgresStore => {
    const store = createPostgresStore({ url, schema, connections: 4 });
    open.push(store);
    return store;
  };
  const add = (store: PostgresStore, id: string, sessionKey: string, extra: Parameters<typeof newRun>[1] = {}) =>
    store.createRun(newRun(id, { sessionKey, timeoutSeconds: 60, createdAt: 1, createdMark: 1, ...extra }));
  const events = async (store: PostgresStore, id: string) =>
    (await store.readEvents(id, 0, 1000, 1e9))!.events.map(({ id, event }) => `${id} ${event}`);
  beforeEach(() => {
    schema = newSchema();
  });
  afterEach(async () => {
    for (const store of open.splice(0)) await store.close();
  });

  it("claims the oldest run of each session that has none running, by priority, then age", async () => {
    const store = create();
    for (const id of ["a1", "a2", "b1", "b2", "c1"]) await add(store, id, id[0]!);
    await add(store, "a3", "a", { priority: 9 });
    await add(store, "d1", "d", { priority: 5 });
    assert.deepEqual(idsOf(await store.claim(claim("w", { count: 2 }))), ["d1", "a1"]);
    const [b1, c1, ...more] = await store.claim(claim("w"));
    assert.deepEqual([b1?.run.id, c1?.run.id, more], ["b1", "c1", []]);
    assert.deepEqual(
      [b1!.token, b1!.run.state, b1!.run.message, b1!.run.lastEventId],
      [1, "running", "message of b1", 1],
    );
    await store.endRun("b1", ending(), NO_EVENTS, KEEP, b1!.token);
    await store.endRun("a1", ending(), NO_EVENTS, KEEP);
    assert.deepEqual(idsOf(await store.claim(claim("w"))), ["a2", "b2"]);
    assert.deepEqual(await store.claim(claim("w")), []);
  });

  it("starts no run before the end that it waited for, or before its own creation, by whatever clocks", async () => {
    const store = create();
    await add(store, "a1", "a", { createdAt: 500 });
    await add(store, "a2", "a", { createdAt: 600 });
    const times = async (id: string) => {
      const { startedAt, finishedAt } = (await store.getRun(id))!;
      return [startedAt, finishedAt];
    };
    await store.claim(claim("w", { startedAt: 1000 }));
    await store.endRun("a1", ending({ finishedAt: 2000 }), NO_EVENTS, KEEP);
    await store.claim(claim("v", { startedAt: 1500 }));
    await store.endRun("a2", ending({ finishedAt: 1800 }), NO_EVENTS, KEEP);
    await add(store, "a3", "a", { createdAt: 3000 });
    await store.claim(claim("w", { startedAt: 2500 }));
    assert.deepEqual(
      [await times("a1"), await times("a2"), await times("a3")],
      [
        [1000, 2000],
        [2000, 2000],
        [3000, null],
      ],
    );
  });

  it("claims a delayed run and those behind it once its time has come, and by its priority then", async () => {
    const store = create();
    const now = await store.now();
    await add(store, "late", "a", { priority: 9, dueMark: now + LONG_MS });
    await add(store, "behind", "a", { priority: 9 });
    await add(store, "due", "b", { priority: 5, dueMark: now - 1 });
    await add(store, "plain", "c");
    assert.deepEqual(idsOf(await store.claim(claim("w", { count: 1 }))), ["plain"]);
    await add(store, "other", "d");
    assert.deepEqual(idsOf(await store.claim(claim("w"))), ["due", "other"]);
    assert.deepEqual(await store.claim(claim("w")), []);
    assert.ok(await store.endRun("late", ending({ from: ["queued"], to: "cancelled" }), NO_EVENTS, KEEP));
    assert.deepEqual(idsOf(await store.claim(claim("w"))), ["behind"]);
  });

  it("finds runs that have waited too long after their delay, and those past their deadline", async () => {
    const store = create();
    await add(store, "old", "a", { createdAt: 100 });
    await add(store, "started", "b", { createdAt: 50, deadlineMark: 500 });
    await add(store, "delayed", "c", { createdAt: 60, dueMark: 300 });
    await add(store, "new", "d", { createdAt: 400, deadlineMark: 450 });
    assert.deepEqual(await store.overdue(350, 9), ["started", "old", "delayed"]);
    assert.deepEqual(await store.overdue(299, 9), ["started", "old"]);
    assert.equal((await store.nextMarks(0)).ready, 50);
    const [held] = await store.claim(claim("w", { count: 2, nowMark: 299 }));
    assert.equal(held?.run.id, "old");
    await store.release("started", 1);
    assert.deepEqual(await store.overdue(350, 9), ["delayed"]);
    assert.equal((await store.nextMarks(0)).ready, 300);
    assert.deepEqual(
      [await store.pastDeadline(449, 9), await store.pastDeadline(500, 9)],
      [
        [],
        [
          { id: "new", deadlineMark: 450 },
          { id: "started", deadlineMark: 500 },
        ],
      ],
    );
    assert.equal((await store.pastDeadline(500, 1)).length, 1);
  });

  it("a cancelled run lets the next one of its session be claimed", async () => {
    const store = create();
    for (const id of ["r1", "r2", "r3", "r4"]) await add(store, id, "a");
    const cancel = (id: string) =>
      store.endRun(id, ending({ from: ["queued", "running"], to: "cancelled" }), NO_EVENTS, KEEP);
    assert.ok(await cancel("r1"));
    assert.ok(await cancel("r3"));
    const [r2] = await store.claim(claim("w"));
    assert.equal(r2?.run.id, "r2");
    assert.ok(await cancel("r2"));
    assert.equal(await store.append("r2", delta("late"), KEEP, r2!.token), false);
    assert.equal(await store.endRun("r2", ending(), delta("late"), KEEP, r2!.token), false);
    assert.deepEqual(await store.renew("w", LONG_MS), []);
    assert.deepEqual(idsOf(await store.claim(claim("w"))), ["r4"]);
  });

  it("four workers run each run once, and those of a session in order, one at a time", async () => {
    const stores = [create(), create(), create(), create()];
    const ids = Array.from({ length: 120 }, (_, i) => `${i % 7}-${String(i).padStart(3, "0")}`);
    const running = new Map<string, string>();
    const done: string[] = [];
    let isComplete = false;
    const adding = Promise.all(
      [0, 1, 2, 3].map(async (lane) => {
        for (const id of ids.filter((id) => Number(id[0]) % 4 === lane)) await add(stores[lane]!, id, id[0]!);
      }),
    ).then(() => {
      isComplete = true;
    });
    await Promise.all(
      stores.map(async (store, i) => {
        while (!isComplete || done.length < ids.length) {
          const held = await store.claim(claim(`w${i}`, { count: 2 }));
          for (const { run } of held) {
            assert.equal(running.get(run.sessionKey), undefined, "two runs of a session at once");
            running.set(run.sessionKey, run.id);
          }
          await Promise.all(
            held.map(async ({ run, token }) => {
              assert.equal(await store.append(run.id, delta("x"), KEEP, token), true);
              done.push(run.id);
              running.delete(run.sessionKey);
              assert.ok(await store.endRun(run.id, ending(), NO_EVENTS, KEEP, token));
            }),
          );
          if (held.length === 0) await sleep(2);
        }
      }),
    );
    await adding;
    assert.deepEqual([...done].sort(), [...ids].sort());
    for (const session of "0123456") {
      const own = done.filter((id) => id[0] === session);
      assert.deepEqual(own, [...own].sort());
    }
  });

  it("renewed leases last; a lease that ended is lost once it is taken", async () => {
    const store = create();
    await add(store, "r1", "a");
    await store.claim(claim("w", { leaseMs: SHORT_MS }));
    assert.deepEqual(await store.renew("other", LONG_MS), []);
    assert.deepEqual(await store.renew("w", LONG_MS), [{ id: "r1", token: 1 }]);
    await sleep(2 * SHORT_MS);
    assert.deepEqual(await store.recoverLost(policy(1)), { requeued: [], ended: [] });
    await store.renew("w", SHORT_MS);
    await sleep(2 * SHORT_MS);
    assert.deepEqual(await store.recoverLost(policy(1)), { requeued: ["r1"], ended: [] });
    assert.deepEqual(await store.renew("w", LONG_MS), []);
  });

  it("a worker that was paused beyond its lease publishes nothing", async () => {
    const [paused, other] = [create(), create()];
    for (const id of ["r1", "r2"]) await add(other, id, "a");
    const [old] = await paused.claim(claim("paused", { leaseMs: SHORT_MS }));
    assert.equal(await paused.append("r1", delta("before"), KEEP, old!.token), true);
    await sleep(2 * SHORT_MS);
    await other.recoverLost(policy(1));
    const file = { name: "f.png", path: "/f.png", contentType: null };
    const late = { ...delta("late"), files: [file], progress: { value: 1, max: 2, node: null } };
    const refused = async () => {
      assert.equal(await paused.append("r1", late, KEEP, old!.token), false);
      assert.equal(await paused.endRun("r1", ending(), late, KEEP, old!.token), false);
    };
    await refused();
    // the run that was lost goes before the next one of its session
    const [again, ...more] = await other.claim(claim("other"));
    assert.deepEqual([again?.run.id, again?.token, more], ["r1", 2, []]);
    await refused();
    assert.equal(await other.append("r1", delta("after"), KEEP, again!.token), true);
    assert.ok(await other.endRun("r1", ending(), NO_EVENTS, KEEP, again!.token));
    await refused();
    assert.equal(await other.getFile("r1", "f.png"), null);
    assert.equal((await other.getStatus("r1", 9))?.progress, null);
    assert.deepEqual(await events(other, "r1"), ["1 status", "2 delta", "3 status", "4 delta", "5 done"]);
  });

  it("a run whose workers are lost too often ends, once, and the next one of its session starts", async () => {
    const stores = [create(), create(), create()];
    for (const id of ["r1", "r2"]) await add(stores[0]!, id, "a");
    for (const expected of ["requeued", "ended"] as const) {
      await stores[0]!.claim(claim("w", { leaseMs: 1 }));
      await sleep(10);
      const results = await Promise.all(stores.map((store) => store.recoverLost(policy(1))));
      const lost = results.flatMap((result) => result[expected]);
      assert.deepEqual(lost, ["r1"]);
    }
    const run = (await stores[0]!.getRun("r1"))!;
    assert.deepEqual([run.state, run.error], ["interrupted", error]);
    assert.deepEqual(await events(stores[0]!, "r1"), ["1 status", "2 status", "3 error"]);
    assert.deepEqual(idsOf(await stores[1]!.claim(claim("w"))), ["r2"]);
  });

  for (const [signal, outcome] of [
    ["SIGSTOP", "wrote false false"],
    ["SIGKILL", undefined],
  ] as const) {
    it(`takes the run of a process after ${signal}, which then writes nothing @long`, async () => {
      const store = create();
      await add(store, "r1", "a");
      const child = spawn(process.execPath, [WORKER, url, schema, "300"], { stdio: ["pipe", "pipe", "inherit"] });
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
      assert.equal((await lines.next()).value, "claimed r1");
      child.kill(signal);
      let taken: HeldRun[] = [];
      while (taken.length === 0) {
        await sleep(20);
        await store.recoverLost(policy(1));
        taken = await store.claim(claim("other"));
      }
      assert.deepEqual([taken[0]!.run.id, taken[0]!.token], ["r1", 2]);
      child.kill("SIGCONT");
      if (outcome !== undefined) child.stdin.end("go\n");
      assert.equal((await lines.next()).value, outcome);
      assert.ok(await store.endRun("r1", ending(), NO_EVENTS, KEEP, 2));
      assert.equal(await store.getFile("r1", "late.png"), null);
      assert.deepEqual(await events(store, "r1"), ["1 status", "2 status", "3 done"]);
    });
  }

  it("ends a lost run at once where none is to be queued again", async () => {
    const store = create();
    await add(store, "r1", "a");
    await store.claim(claim("w", { leaseMs: 1 }));
    await sleep(10);
    const { requeued, ended } = await store.recoverLost(policy(0));
    assert.deepEqual([requeued, ended], [[], ["r1"]]);
    assert.equal((await store.getSummary("r1"))?.state, "interrupted");
  });
});
