import assert from "node:assert/strict";
import type { Attempt, DeliveryClaim, Receiver } from "#src/service/hooks/store/deliveries.js";
import { NO_EVENTS } from "#src/service/hooks/store/queue-store.js";
import type { Store } from "#src/service/hooks/store/store.js";
import { startNext } from "../../../../helpers/hooks/claims.js";
import { describeStores } from "../../../../helpers/hooks/hook-stores.js";
import { newRun } from "../../../../helpers/hooks/new-run.js";

const KEEP = { events: 1000, bytes: 1_000_000 };
const HOUR = 3600_000;

const receiver = (endpoint: string, extra: Partial<Receiver> = {}): Receiver => ({
  endpoint,
  target: "t1",
  sessionPrefix: "",
  ...extra,
});
const claimOf = (extra: Partial<DeliveryClaim> = {}): DeliveryClaim => ({
  endpoints: [{ endpoint: "shop", count: 10 }],
  leaseMs: HOUR,
  nowMark: 1000,
  ...extra,
});
const attempt = (extra: Partial<Attempt> = {}): Attempt => ({
  at: 5,
  ms: 7,
  status: 500,
  error: "status 500",
  ...extra,
});

async function endedRun(store: Store, id: string, receivers: Receiver[], sessionKey = "hook:a"): Promise<void> {
  await store.createRun(newRun(id, { sessionKey }));
  await startNext(store, id);
  const ending = { from: ["running"], to: "succeeded", finishedAt: 3000, endedMark: 1000, error: null } as const;
  await store.endRun(id, { ...ending, terminal: { event: "done", data: "{}" }, receivers }, NO_EVENTS, KEEP);
}

describeStores({ title: "deliveries of a store" }, (kind) => {
  it("writes a delivery for each receiver of the session with the run's end", async () => {
    const store = kind.create();
    const receivers = [receiver("shop"), receiver("other", { sessionPrefix: "shop:" }), receiver("log")];
    await endedRun(store, "r1", receivers, "hook:\u0000é");
    const stored = await store.listDeliveries(null, 10);
    const common = {
      runId: "r1",
      sessionKey: "hook:\u0000é",
      runState: "succeeded",
      finishedAt: 3000,
      endedMark: 1000,
    };
    assert.deepEqual(stored, [
      { id: 2, endpoint: "log", target: "t1", ...common, state: "pending", attempts: [] },
      { id: 1, endpoint: "shop", target: "t1", ...common, state: "pending", attempts: [] },
    ]);
    assert.deepEqual(await store.getDelivery(1), stored[1]);
    assert.equal(await store.getDelivery(3), null);
  });

  it("writes nothing for a run that had ended before", async () => {
    const store = kind.create();
    await endedRun(store, "r1", []);
    const terminal = { event: "done", data: "{}" };
    const ending = { from: ["running"], to: "failed", finishedAt: 3000, endedMark: 1000, error: null } as const;
    await store.endRun("r1", { ...ending, terminal, receivers: [receiver("shop")] }, NO_EVENTS, KEEP);
    assert.deepEqual(await store.listDeliveries(null, 10), []);
  });

  it("gives a delivery to one claim at a time, until its lease ends", async () => {
    const store = kind.create();
    for (const id of ["r1", "r2", "r3"]) await endedRun(store, id, [receiver("shop"), receiver("log")]);
    const two = await store.claimDeliveries(claimOf({ endpoints: [{ endpoint: "shop", count: 2 }], leaseMs: 0 }));
    assert.deepEqual(
      two.map(({ runId, endpoint, token }) => [runId, endpoint, token]),
      [
        ["r1", "shop", 1],
        ["r2", "shop", 1],
      ],
    );
    const endpoints = ["shop", "log", "unknown"].map((endpoint) => ({ endpoint, count: 5 }));
    const all = (await Promise.all([1, 2, 3].map(() => store.claimDeliveries(claimOf({ endpoints }))))).flat();
    assert.equal(all.length, 6);
    assert.equal(new Set(all.map(({ id }) => id)).size, 6);
    assert.ok(all.every(({ ageMs }) => ageMs >= 0 && ageMs < HOUR));
    assert.deepEqual(await store.claimDeliveries(claimOf({ endpoints })), []);
    // the first claim of r1 is over
    assert.equal(await store.settleDelivery(two[0]!.id, 1, { state: "delivered", nowMark: 1000 }), false);
    assert.equal(await store.settleDelivery(two[0]!.id, 2, { state: "delivered", nowMark: 1000 }), true);
    assert.equal(await store.settleDelivery(two[0]!.id, 2, { state: "delivered", nowMark: 1000 }), false);
  });

  it("logs attempts, and tries again when it is time", async () => {
    const store = kind.create();
    await endedRun(store, "r1", [receiver("shop")]);
    const claim = claimOf({ leaseMs: 0 });
    const [first] = await store.claimDeliveries(claim);
    await store.settleDelivery(first!.id, 1, { state: "pending", attempt: attempt(), retryMs: 0, nowMark: 1000 });
    const [second] = await store.claimDeliveries(claim);
    assert.deepEqual(second?.attempts, [attempt()]);
    const last = attempt({ status: null, error: "no response within 15 s" });
    await store.settleDelivery(first!.id, 2, { state: "pending", attempt: last, retryMs: HOUR, nowMark: 1000 });
    assert.deepEqual(await store.claimDeliveries(claim), []);
    assert.deepEqual((await store.getDelivery(first!.id))?.attempts, [attempt(), last]);
  });

  it("counts those that are pending, up to a bound", async () => {
    const store = kind.create();
    const count = () => store.countPendingDeliveries(3);
    assert.equal(await count(), 0);
    await endedRun(store, "r1", [receiver("shop"), receiver("log")]);
    assert.equal(await count(), 2);
    const [held] = await store.claimDeliveries(claimOf());
    assert.equal(await count(), 2);
    await store.settleDelivery(held!.id, 1, { state: "delivered", nowMark: 1000 });
    assert.equal(await count(), 1);
    for (const id of ["r2", "r3", "r4"]) await endedRun(store, id, [receiver("shop")]);
    assert.equal(await count(), 3);
  });

  it("keeps the last 20 attempts", async () => {
    const store = kind.create();
    await endedRun(store, "r1", [receiver("shop")]);
    for (let n = 1; n <= 23; n++) {
      const [held] = await store.claimDeliveries(claimOf({ leaseMs: 0 }));
      await store.settleDelivery(held!.id, n, { state: "pending", attempt: attempt({ at: n }), nowMark: 1000 });
    }
    const { attempts } = (await store.getDelivery(1))!;
    assert.deepEqual([attempts.length, attempts[0]?.at, attempts.at(-1)?.at], [20, 4, 23]);
  });

  it("ends the deliveries of an endpoint that is gone, until its address changes or a delivery succeeds", async () => {
    const store = kind.create();
    const states = async () => (await store.listDeliveries(null, 10)).map(({ state }) => state);
    await endedRun(store, "r1", [receiver("shop")]);
    await endedRun(store, "r2", [receiver("shop"), receiver("log")]);
    const [held] = await store.claimDeliveries(claimOf());
    const gone = { state: "dead", attempt: attempt({ status: 410 }), isGone: true, nowMark: 1000 } as const;
    await store.settleDelivery(held!.id, 1, gone);
    assert.deepEqual(await states(), ["pending", "dead", "dead"]);
    await endedRun(store, "r3", [receiver("shop")]);
    await endedRun(store, "r4", [receiver("shop", { target: "t2" })]);
    assert.deepEqual(await states(), ["pending", "dead", "pending", "dead", "dead"]);
    assert.equal((await store.redeliver(held!.id, 1000))?.state, "pending");
    const again = (await store.claimDeliveries(claimOf())).find(({ id }) => id === held!.id)!;
    await store.settleDelivery(again.id, again.token, { state: "delivered", nowMark: 1000 });
    await endedRun(store, "r5", [receiver("shop")]);
    assert.equal((await states())[0], "pending");
  });

  it("makes an ended delivery due again, with its log", async () => {
    const store = kind.create();
    await endedRun(store, "r1", [receiver("shop")]);
    const [held] = await store.claimDeliveries(claimOf());
    await store.settleDelivery(held!.id, 1, { state: "dead", attempt: attempt(), nowMark: 1000 });
    assert.equal((await store.redeliver(held!.id, 1000))?.state, "pending");
    const [again] = await store.claimDeliveries(claimOf());
    assert.deepEqual([again?.token, again?.attempts], [2, [attempt()]]);
    assert.equal(await store.redeliver(99, 1000), null);
  });

  it("lists newest first, by endpoint, state and run", async () => {
    const store = kind.create();
    for (const id of ["r1", "r2"]) await endedRun(store, id, [receiver("shop"), receiver("log")]);
    const [held] = await store.claimDeliveries(claimOf());
    await store.settleDelivery(held!.id, 1, { state: "delivered", nowMark: 1000 });
    const ids = async (...args: Parameters<Store["listDeliveries"]>) =>
      (await store.listDeliveries(...args)).map(({ id }) => id);
    assert.deepEqual(await ids(null, 3), [4, 3, 2]);
    assert.deepEqual(await ids(2, 3), [1]);
    assert.deepEqual(await ids(null, 9, { endpoint: "log" }), [4, 2]);
    assert.deepEqual(await ids(null, 9, { state: "delivered" }), [1]);
    assert.deepEqual(await ids(null, 9, { runId: "r2", state: "pending" }), [4, 3]);
    assert.deepEqual(await ids(null, 9, { runId: "'; DROP TABLE deliveries; --" }), []);
  });

  it("removes what ended first beyond a number, and nothing that is pending", async () => {
    const store = kind.create();
    for (const id of ["r1", "r2", "r3", "r4"]) await endedRun(store, id, [receiver("shop")]);
    for (const { id, token } of (await store.claimDeliveries(claimOf())).slice(0, 3)) {
      await store.settleDelivery(id, token, { state: "delivered", nowMark: 1000 });
    }
    const sweep = { endedBefore: 0, maxEndedRuns: 10, nowMark: 2000, budget: 100 };
    const left = async (maxEndedDeliveries: number) => {
      await store.sweep({ ...sweep, maxEndedDeliveries });
      return (await store.listDeliveries(null, 9)).map(({ runId }) => runId);
    };
    assert.deepEqual(await left(3), ["r4", "r3", "r2", "r1"]);
    assert.deepEqual(await left(1), ["r4", "r3"]);
    assert.deepEqual(await left(0), ["r4"]);
  });

  it("survives a restart, and removes what ended with its retention", async () => {
    let store = kind.create();
    for (const id of ["r1", "r2"]) await endedRun(store, id, [receiver("shop")]);
    store = await kind.reopen(store);
    const [held] = await store.claimDeliveries(claimOf());
    await store.settleDelivery(held!.id, 1, { state: "delivered", nowMark: 1000 });
    const sweep = { endedBefore: 999, maxEndedRuns: 10, maxEndedDeliveries: 10, nowMark: 1000 + HOUR, budget: 100 };
    await store.sweep(sweep);
    assert.equal((await store.listDeliveries(null, 9)).length, 2);
    await store.sweep({ ...sweep, endedBefore: 1000, nowMark: 1000 });
    assert.deepEqual(
      (await store.listDeliveries(null, 9)).map(({ runId }) => runId),
      ["r2"],
    );
    const twoDaysOn = 1000 + 49 * HOUR;
    await store.sweep({
      ...sweep,
      endedBefore: twoDaysOn,
      nowMark: kind.name === "PostgreSQL" ? 1000 - HOUR : twoDaysOn,
    });
    assert.deepEqual(await store.listDeliveries(null, 9), []);
  });
});
