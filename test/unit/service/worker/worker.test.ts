import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Agent } from "#src/service/agent/agent.js";
import { systemClock } from "#src/service/hooks/clock.js";
import { createHookService } from "#src/service/hooks/create-hook-service.js";
import type { HookServiceOptions } from "#src/service/hooks/hook-service.js";
import { createMemoryStore } from "#src/service/hooks/store/memory-store.js";
import { createPostgresStore } from "#src/service/hooks/store/postgres/postgres-store.js";
import { type RunningWorker, startWorker, type WorkerOptions } from "#src/service/worker/worker.js";
import { refuses } from "../../../helpers/errors.js";
import { claimOf } from "../../../helpers/hooks/claims.js";
import { refusesHook, until } from "../../../helpers/hooks/hook-runs.js";
import { newRun } from "../../../helpers/hooks/new-run.js";
import { newSchema, postgres } from "../../../helpers/postgres/cluster.js";
import { startProxy } from "../../../helpers/postgres/proxy.js";

const silent = { debug() {}, info() {}, warn() {}, error() {} };
const upper: Agent = async ({ message }, { emit }) => {
  emit("delta", { delta: message });
  return { response: message.toUpperCase() };
};

describe("front ends and workers of one store", () => {
  const url = postgres();
  const open: { close(drainSeconds?: number): Promise<void> }[] = [];
  afterEach(async () => {
    for (const part of open.splice(0).reverse()) await part.close(0);
  });

  const front = (schema: string, limits = {}, options: Partial<HookServiceOptions> = {}) => {
    const store = createPostgresStore({ url, schema, connections: 3 });
    const config = { hooks_token: "a-token-of-the-tests", limits };
    const service = createHookService({ agent: upper, store, config, workers: true, logger: silent, ...options });
    open.push(service);
    return service.runs;
  };
  const work = async (schema: string, agent: Agent, options: Partial<WorkerOptions> = {}): Promise<RunningWorker> => {
    const store = createPostgresStore({ url, schema, connections: 3 });
    const worker = await startWorker({ agent, store, logger: silent, ...options });
    open.push(worker);
    return worker;
  };
  const begin = async (runs: ReturnType<typeof front>, message: string, sessionKey = "hook:a") =>
    (await runs.start({ origin: "agent", message, sessionKey })).runId;
  const eventsOf = async (runs: ReturnType<typeof front>, id: string) => {
    const events = [];
    for await (const slice of runs.follow(id, 0)) events.push(...slice.events);
    return events;
  };
  const stateOf = async (runs: ReturnType<typeof front>, id: string) => (await runs.get(id)).state;

  it("run what any front end took, and any front end streams it", async () => {
    const schema = newSchema();
    const [one, two] = [front(schema), front(schema)];
    await work(schema, upper);
    const id = await begin(one, "a fox");
    const events = await eventsOf(two, id);
    assert.deepEqual(
      events.map(({ id, event }) => [id, event]),
      [
        [1, "status"],
        [2, "delta"],
        [3, "done"],
      ],
    );
    assert.equal(events.at(-1)?.data, '{"response":"A FOX"}');
    assert.deepEqual(await eventsOf(one, id), events);
  });

  it("leave a batch, whose run is neither a prompt nor a request to start again, to one that renders batches", async () => {
    const schema = newSchema();
    const runs = front(schema);
    let calls = 0;
    await work(schema, async () => {
      calls += 1;
      return { response: "" };
    });
    const store = createPostgresStore({ url, schema, connections: 1 });
    open.push(store);
    await store.createRun(newRun("b", { sessionKey: "batch-a-0", origin: "batch", createdAt: 1, createdMark: 1 }));
    assert.equal((await eventsOf(runs, await begin(runs, "a fox"))).at(-1)?.event, "done");
    assert.equal(await stateOf(runs, "b"), "queued");
    assert.equal(calls, 1);
    await work(schema, upper, { batchAgent: async () => ({ response: "a batch" }) });
    assert.match((await eventsOf(runs, "b")).at(-1)!.data, /a batch/);
  });

  it("are one process where it is not told otherwise, and several of those share a store", async () => {
    const schema = newSchema();
    const ran: string[] = [];
    const agentOf =
      (name: string): Agent =>
      async ({ message }) => {
        await sleep(20);
        ran.push(name);
        return { response: message };
      };
    const limits = { running: 1 };
    const [one, two] = ["one", "two"].map((name) => front(schema, limits, { workers: false, agent: agentOf(name) }));
    const ids = [];
    for (let n = 0; n < 20; n++) ids.push(await begin(n % 2 === 0 ? one! : two!, `m${n}`, `hook:${n % 5}`));
    for (const [n, id] of ids.entries()) {
      assert.match((await eventsOf(n % 2 === 0 ? two! : one!, id)).at(-1)!.data, new RegExp(`"m${n}"`));
    }
    assert.deepEqual([...new Set(ran)].sort(), ["one", "two"]);
    for (let session = 0; session < 5; session++) {
      const starts: number[] = await Promise.all(
        ids.filter((_, n) => n % 5 === session).map(async (id) => (await one!.get(id)).startedAt!),
      );
      assert.deepEqual(
        starts,
        [...starts].sort((a, b) => a - b),
      );
    }
  });

  it("take the runs of a service that is stuck, which ends nothing any more @long", async () => {
    const schema = newSchema();
    const proxy = await startProxy(url);
    open.push(proxy);
    const limits = { lease_seconds: 3 };
    const stuckStore = createPostgresStore({ url: proxy.url, schema, connections: 3 });
    let release = () => {};
    const stuckAgent: Agent = () =>
      new Promise((resolve) => {
        release = () => resolve({ response: "late" });
      });
    const stuck = front(schema, limits, { workers: false, agent: stuckAgent, store: stuckStore });
    const id = await begin(stuck, "a fox");
    await until(async () => (await stateOf(stuck, id)) === "running", "the start");
    await proxy.stop();
    const next = front(schema, limits, { workers: false });
    assert.match((await eventsOf(next, id)).at(-1)!.data, /A FOX/);
    release();
    await proxy.start();
    await sleep(1500);
    assert.match((await eventsOf(next, id)).at(-1)!.data, /A FOX/);
  });

  it("run a session's runs one after the other, on any worker", async () => {
    const schema = newSchema();
    const runs = front(schema);
    const order: string[] = [];
    let atOnce = 0;
    const agent: Agent = async ({ message }) => {
      atOnce += 1;
      assert.equal(atOnce, 1);
      await sleep(5);
      atOnce -= 1;
      order.push(message);
      return { response: "" };
    };
    await Promise.all([work(schema, agent), work(schema, agent)]);
    const names = Array.from({ length: 10 }, (_, n) => `run ${n}`);
    const ids = [];
    for (const name of names) ids.push(await begin(runs, name));
    await eventsOf(runs, ids.at(-1)!);
    assert.deepEqual(order, names);
  });

  it("cancel a run that another process runs, and abort its agent", async () => {
    const schema = newSchema();
    const runs = front(schema);
    const aborted = new Promise<void>((resolve) => {
      void work(schema, async (_run, { signal }) => {
        await new Promise((end) => signal.addEventListener("abort", end, { once: true }));
        resolve();
        return { response: "late" };
      });
    });
    const id = await begin(runs, "a fox");
    await until(async () => (await stateOf(runs, id)) === "running", "the start");
    assert.equal((await runs.cancel(id)).state, "cancelled");
    await aborted;
    assert.deepEqual(
      (await eventsOf(runs, id)).map(({ event }) => event),
      ["status", "aborted"],
    );
  });

  it("start no run while any front end has paused the queue", async () => {
    const schema = newSchema();
    const [one, two] = [front(schema), front(schema)];
    await one.setPaused(true);
    assert.equal(await two.isPaused(), true);
    const started: string[] = [];
    await work(schema, async ({ id }) => {
      started.push(id);
      return { response: "" };
    });
    const id = await begin(two, "a fox");
    // time for its first looks
    await sleep(500);
    assert.deepEqual([await stateOf(one, id), started], ["queued", []]);
    await two.setPaused(false);
    await eventsOf(one, id);
    assert.deepEqual(started, [id]);
  });

  it("give runs up when they stop, for another worker to run", async () => {
    const schema = newSchema();
    const runs = front(schema);
    const endless: Agent = (_run, { signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    const first = await work(schema, endless);
    const id = await begin(runs, "a fox");
    await until(async () => first.running === 1, "the claim");
    await first.close(0);
    assert.equal(await stateOf(runs, id), "queued");
    const attempts: (number | undefined)[] = [];
    await work(schema, async ({ attempt }) => {
      attempts.push(attempt);
      return { response: "done" };
    });
    const events = await eventsOf(runs, id);
    assert.deepEqual(
      events.map(({ id, event }) => `${id} ${event}`),
      ["1 status", "2 status", "3 done"],
    );
    assert.deepEqual(attempts, [2]);
  });

  it("run a lost worker's run again, once, and refuse what it writes later @long", async () => {
    const schema = newSchema();
    const runs = front(schema);
    // a worker that holds a lease and says nothing
    const lost = createPostgresStore({ url, schema, connections: 1 });
    open.push(lost);
    const event = { event: "status", data: "{}" };
    const claim = claimOf({ worker: "lost", leaseMs: 300 });
    const id = await begin(runs, "a fox");
    const [held] = await lost.claim(claim);
    await work(schema, upper, { leaseSeconds: 3 });
    const events = await eventsOf(runs, id);
    assert.deepEqual(
      events.map(({ event }) => event),
      ["status", "status", "delta", "done"],
    );
    const batch = { skip: 0, events: [event], files: [] };
    assert.equal(await lost.append(id, batch, { events: 10, bytes: 1000 }, held!.token), false);
  });

  it("end a lost worker's run as interrupted if that is configured @long", async () => {
    const schema = newSchema();
    const runs = front(schema);
    const lost = createPostgresStore({ url, schema, connections: 1 });
    open.push(lost);
    const id = await begin(runs, "a fox");
    await lost.claim(claimOf({ worker: "lost", leaseMs: 300 }));
    await work(schema, upper, { leaseSeconds: 3, onLoss: "interrupt" });
    assert.equal((await eventsOf(runs, id)).at(-1)?.event, "error");
    assert.equal(await stateOf(runs, id), "interrupted");
  });

  it("find runs and their changes without any hint", async () => {
    const schema = newSchema();
    const deaf = () => ({ ...createPostgresStore({ url, schema, connections: 3 }), listen: () => () => undefined });
    const runs = front(schema, {}, { store: deaf() });
    await work(schema, upper, { store: deaf() });
    const events = await eventsOf(runs, await begin(runs, "a fox"));
    assert.equal(events.at(-1)?.event, "done");
  });

  it("release what was claimed by a statement whose answer was lost", async () => {
    const schema = newSchema();
    const runs = front(schema);
    const store = createPostgresStore({ url, schema, connections: 3 });
    let losses = 0;
    const claim: typeof store.claim = async (request) => {
      const held = await store.claim(request);
      if (held.length === 0 || losses > 0) return held;
      losses += 1;
      throw new Error("the answer was lost");
    };
    const worker = await startWorker({ agent: upper, store: { ...store, claim }, logger: silent });
    open.push(worker);
    const id = await begin(runs, "a fox");
    assert.equal((await eventsOf(runs, id)).at(-1)?.event, "done");
    assert.equal(losses, 1);
  });

  it("store events once whose writer lost the answer @long", async () => {
    const schema = newSchema();
    const runs = front(schema);
    const store = createPostgresStore({ url, schema, connections: 3 });
    let losses = 0;
    const append: typeof store.append = async (...batch) => {
      const isAdded = await store.append(...batch);
      if (losses > 1) return isAdded;
      losses += 1;
      throw new Error("the answer was lost");
    };
    const agent: Agent = async (_run, { emit }) => {
      emit("delta", { delta: "one" });
      await sleep(100);
      emit("delta", { delta: "two" });
      await sleep(1500);
      emit("delta", { delta: "three" });
      return { response: "done" };
    };
    open.push(await startWorker({ agent, store: { ...store, append }, logger: silent }));
    const events = await eventsOf(runs, await begin(runs, "a fox"));
    assert.deepEqual(
      events.slice(1).map(({ data }) => data),
      ['{"delta":"one"}', '{"delta":"two"}', '{"delta":"three"}', '{"response":"done"}'],
    );
    assert.equal(losses, 2);
  });

  it("count the runs that wait, of a session and of all", async () => {
    const schema = newSchema();
    const runs = front(schema, { queued_per_session: 2, queued: 5 });
    for (let n = 0; n < 3; n++) await begin(runs, "a fox");
    const inSession = await refusesHook(begin(runs, "a fox"), "queue_full");
    assert.match(inSession.message, /queue of this session is full/);
    const [first, last] = [await begin(runs, "a fox", "hook:b"), await begin(runs, "a fox", "hook:c")];
    const inAll = await refusesHook(begin(runs, "a fox", "hook:d"), "queue_full");
    assert.match(inAll.message, /queue of this service is full/);
    assert.equal((await runs.status(first)).queuePosition, 4);
    assert.equal((await runs.status(last)).queuePosition, 5);
    assert.deepEqual(runs.stats().queued, 5);
  });

  it("end runs that have waited too long", async () => {
    const schema = newSchema();
    const runs = front(schema, { queue_seconds: 1 });
    const id = await begin(runs, "a fox");
    await until(async () => (await stateOf(runs, id)) === "expired", "the expiry");
    assert.equal((await eventsOf(runs, id)).at(-1)?.event, "error");
  });

  it("start a delayed run at its time, and end one by its deadline, waiting or running", async () => {
    const schema = newSchema();
    const runs = front(schema);
    const agent: Agent = (run, { signal }) =>
      run.message === "hold"
        ? new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("aborted"))))
        : Promise.resolve({ response: "" });
    await work(schema, agent);
    const start = async (message: string, terms: object) =>
      (await runs.start({ origin: "agent", message, sessionKey: `hook:${JSON.stringify(terms)}`, ...terms })).runId;
    const delayed = await start("x", { delaySeconds: 1, priority: 3 });
    const held = await start("hold", { deadlineSeconds: 1 });
    const waiting = (
      await runs.start({
        origin: "agent",
        message: "x",
        sessionKey: (await runs.get(held)).sessionKey,
        deadlineSeconds: 0.5,
      })
    ).runId;
    await until(async () => (await stateOf(runs, waiting)) === "expired", "the deadline of the waiting run");
    await until(async () => (await stateOf(runs, held)) === "timed_out", "the deadline of the running run");
    for (const id of [held, waiting]) assert.equal((await runs.get(id)).error?.code, "deadline_exceeded");
    await until(async () => (await stateOf(runs, delayed)) === "succeeded", "the delayed run");
    const { startedAt, dueMark } = await runs.get(delayed);
    assert.ok(startedAt! >= dueMark!, `started at ${startedAt}, due at ${dueMark}`);
  });

  it("try a transient failure again, with one stream and one end", async () => {
    const schema = newSchema();
    const runs = front(schema);
    const attempts: (number | undefined)[] = [];
    const agent: Agent = async ({ attempt }, { emit }) => {
      attempts.push(attempt);
      emit("delta", { delta: `attempt ${attempts.length}` });
      if (attempts.length < 3) throw Object.assign(new Error("busy"), { retryable: true });
      return { response: "" };
    };
    const retries = { first_delay_seconds: 0.1, attempts: 3 };
    await Promise.all([work(schema, agent, { retries }), work(schema, agent, { retries })]);
    const id = await begin(runs, "x");
    await until(async () => (await stateOf(runs, id)) === "succeeded", "the third attempt");
    assert.deepEqual(attempts, [undefined, 2, 3]);
    assert.deepEqual(
      (await eventsOf(runs, id)).map(({ event }) => event),
      ["status", "delta", "retry", "status", "delta", "retry", "status", "delta", "done"],
    );
  });

  it("go by the server's clock: one of a machine that is 10 minutes off changes nothing", async () => {
    const schema = newSchema();
    const at = (offset: number) => ({ ...systemClock, now: () => Date.now() + offset });
    const early = front(schema, { queue_seconds: 60 }, { clock: at(-600_000) });
    const late = front(schema, { queue_seconds: 60 }, { clock: at(600_000) });
    const begun = Date.now();
    const id = await begin(early, "a fox");
    const { createdAt } = await late.get(id);
    const apart = early.now() - late.now();
    // the server's clock is known to half of a round trip
    const most = 2 * (Date.now() - begun) + 1000;
    assert.ok(Math.abs(createdAt - Date.now()) < most, `${createdAt - Date.now()} ms`);
    assert.ok(Math.abs(apart) < most, `${apart} ms`);
    await sleep(1200);
    assert.equal(await stateOf(late, id), "queued");
    await work(schema, upper, { clock: at(600_000) });
    assert.equal((await eventsOf(early, id)).at(-1)?.event, "done");
  });

  it("need a store that can be shared", async () => {
    const wrong = (options: object) => () =>
      createHookService({ agent: upper, config: {}, workers: true, logger: silent, ...options });
    await refuses(async () => wrong({ store: createMemoryStore() })(), "config.invalid", /needs a shared store/);
    await refuses(async () => wrong({})(), "config.invalid", /needs a shared store/);
    await refuses(
      async () => startWorker({ agent: upper, store: createMemoryStore() as never }),
      "usage.invalid",
      /^store: expected a shared store/,
    );
  });
});
