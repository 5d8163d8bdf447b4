import assert from "node:assert/strict";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { HookError } from "latentkit/hooks";
import { RateWindow } from "#src/service/hooks/http/access/rates.js";
import { createMemoryStore } from "#src/service/hooks/store/memory-store.js";
import { createSqliteStore } from "#src/service/hooks/store/sqlite/sqlite-store.js";
import type { Store } from "#src/service/hooks/store/store.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { FakeClock } from "../../../../helpers/hooks/fake-clock.js";
import { faultyDriver } from "../../../../helpers/hooks/faulty-driver.js";
import { serviceStarter, until } from "../../../../helpers/hooks/hook-service.js";

const startService = serviceStarter();

describe("metrics", () => {
  it("count requests, runs and streams", async () => {
    const { start, get, url } = await startService();
    const { stream_url } = await start("x");
    await (await fetch(url + stream_url)).text();
    await fetch(`${url}/api/runs`);
    const metrics = async () => (await get("/metrics")).text();
    await until(async () => /route="stream",method="GET",status="200"\} 1/.test(await metrics()));
    const text = await metrics();
    assert.match(text, /latentkit_http_requests_total\{route="agent",method="POST",status="200"\} 1/);
    assert.match(text, /latentkit_http_requests_total\{route="runs",method="GET",status="401"\} 1/);
    assert.match(text, /latentkit_auth_failures_total\{reason="refused"\} 1/);
    assert.match(text, /latentkit_runs_created_total\{origin="agent"\} 1/);
    assert.match(text, /latentkit_runs_finished_total\{state="succeeded"\} 1/);
    assert.match(text, /latentkit_runs_queued 0/);
    assert.match(text, /latentkit_streams_open 0/);
  });

  it("show the queue beside its limits, and the process", async () => {
    const { start, get } = await startService({ config: { limits: { running: 1, queued: 7, streams: 9 } } });
    await start("hold");
    await start("x");
    const metrics = async () => (await get("/metrics")).text();
    const value = async (name: string) => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(await metrics())?.[1]);
    await until(async () => (await value("latentkit_queue_wait_seconds")) > 0.05);
    const names = ["runs_queued", "runs_running", "runs_queued_limit", "runs_running_limit", "streams_limit"];
    assert.deepEqual(await Promise.all(names.map((name) => value(`latentkit_${name}`))), [1, 1, 7, 1, 9]);
    assert.ok((await value("process_resident_memory_bytes")) > 2 ** 20);
    assert.ok((await value("process_cpu_seconds_total")) > 0);
    assert.ok(Math.abs((await value("process_start_time_seconds")) * 1000 - performance.timeOrigin) < 1);
  });

  it("10,000 session keys, paths and methods add no label @long", async () => {
    const config = {
      hooks_allow_request_session_key: true,
      limits: { starts_per_10s: 100_000, queued: 20_000, running: 16, failed_auth_per_minute: 1 },
    };
    const { post, get, url, hooks } = await startService({ config });
    const series = async () => (await (await get("/metrics")).text()).split("\n").length;
    const start = (key: string) => post("/hooks/agent", { message: "x", sessionKey: `hook:${key}` });
    await start("first");
    await get("/hooks/nothing");
    const odd = () => fetch(`${url}/health`, { method: "PROPFIND" });
    await odd();
    await series();
    const before = await series();
    for (let i = 0; i < 1000; i += 50) {
      const responses = await Promise.all(Array.from({ length: 50 }, (_, n) => start(`k${i + n}`)));
      for (const response of responses) assert.equal(response.status, 200, await response.text());
    }
    for (let i = 1000; i < 10_000; i++) {
      // connections that have been idle for too long must be closed here before a request takes one
      if (i % 100 === 0) await setImmediate();
      await hooks.runs.start({ origin: "agent", message: "x", sessionKey: `hook:k${i}` });
    }
    for (let i = 0; i < 100; i++) await get(`/hooks/${i}`);
    await fetch(`${url}/health`, { method: "REPORT" });
    const text = await (await get("/metrics")).text();
    assert.equal(text.split("\n").length, before);
    assert.doesNotMatch(text, /hook:|k9999/);
  });

  it("belong to one service", async () => {
    const [one, two] = [await startService(), await startService()];
    await one.start("x");
    assert.doesNotMatch(await (await two.get("/metrics")).text(), /runs_created_total\{/);
  });

  it("rates of starts hold a bounded number of sessions", () => {
    const window = new RateWindow({ limit: 200, windowMs: 10_000, clock: new FakeClock() });
    for (let i = 0; i < 20_000; i++) window.count(`hook:${i}`);
    assert.equal(window.size, 10_000);
  });
});

describe("metrics and openapi.json", () => {
  it("need the token or are absent, as configured", async () => {
    for (const path of ["/metrics", "/openapi.json"]) {
      const key = path === "/metrics" ? "metrics" : "openapi";
      const statuses = async (access: "open" | "token" | "none") => {
        const { url, get } = await startService({ config: { [key]: access } });
        return [(await fetch(url + path)).status, (await get(path)).status];
      };
      assert.deepEqual(await statuses("open"), [200, 200], path);
      assert.deepEqual(await statuses("token"), [401, 200], path);
      assert.deepEqual(await statuses("none"), [404, 404], path);
    }
    const off = await startService({ config: { hooks_token: undefined, metrics: "token" } });
    assert.equal((await fetch(`${off.url}/metrics`)).status, 503);
    const unknown = { config: { metrics: "closed" as never } };
    await assert.rejects(
      startService(unknown),
      /^LatentkitError: createHookService: "metrics": expected "open", "token" or "none", received "closed"\.$/,
    );
  });

  it("are in the document as configured", async () => {
    const { get } = await startService({ config: { metrics: "none", openapi: "token" } });
    type Document = { paths: Record<string, { get: object }> };
    const { paths } = (await (await get("/openapi.json")).json()) as Document;
    assert.equal("/metrics" in paths, false);
    assert.ok("security" in paths["/openapi.json"]!.get);
    const open = await startService();
    const all = (await (await open.get("/openapi.json")).json()) as Document;
    assert.equal("security" in all.paths["/metrics"]!.get, false);
  });
});

describe("probes", () => {
  const folder = temporaryFolder();

  it("are open to all", async () => {
    const { url } = await startService();
    for (const path of ["/health", "/ready"]) {
      const response = await fetch(url + path);
      assert.deepEqual([response.status, ((await response.json()) as { ok: boolean }).ok], [200, true]);
    }
  });

  it("ready is 503 while the store is down, health stays 200", async () => {
    const memory = createMemoryStore();
    let isDown = false;
    const store = new Proxy(memory, {
      get(target, name) {
        const member = Reflect.get(target, name) as unknown;
        if (typeof member !== "function") return member;
        return (...args: unknown[]) => {
          if (isDown) throw new HookError("store_unavailable", undefined, { cause: new Error("disk on fire") });
          return Reflect.apply(member, target, args) as unknown;
        };
      },
    });
    const { get, post } = await startService({ store });
    assert.equal((await get("/ready")).status, 200);
    isDown = true;
    const down = await get("/ready");
    assert.equal(down.status, 503);
    assert.doesNotMatch(await down.text(), /disk on fire/);
    const refused = await post("/hooks/agent", { message: "x" });
    assert.equal(refused.status, 503);
    assert.doesNotMatch(await refused.text(), /disk on fire/);
    assert.equal((await get("/health")).status, 200);
    isDown = false;
    await until(async () => (await get("/ready")).status === 200);
    assert.equal((await post("/hooks/agent", { message: "x" })).status, 200);
  });

  it("ready is 503 while known damage persists, though starts work", async () => {
    const driver = faultyDriver();
    const { get, post } = await startService({ store: createSqliteStore(join(folder(), "store.db"), { driver }) });
    assert.equal((await post("/hooks/wake", { text: "x", mode: "next-heartbeat" })).status, 200);
    driver.before = (sql) => {
      if (/FROM runs .* LIMIT/.test(sql)) throw new Error("database disk image is malformed");
    };
    assert.equal((await get("/ready")).status, 200);
    assert.equal((await get("/api/runs")).status, 503);
    assert.equal((await get("/ready")).status, 503);
    driver.before = () => undefined;
    await until(async () => (await get("/ready")).status === 200);
    assert.equal((await get("/api/runs")).status, 200);
  });

  it("ready checks the store at most twice a second", async () => {
    const clock = new FakeClock();
    const memory = createMemoryStore();
    let pings = 0;
    const ping = async () => {
      pings += 1;
    };
    const { get } = await startService({ store: { ...memory, ping }, clock });
    for (let i = 0; i < 20; i++) assert.equal((await get("/ready")).status, 200);
    assert.equal(pings, 2);
    await clock.advance(1000);
    await Promise.all(Array.from({ length: 20 }, () => get("/ready")));
    assert.ok(pings <= 4, `${pings} pings`);
  });

  it("ready is 503 if the store hangs", async () => {
    const memory = createMemoryStore();
    let hangs = false;
    const store = new Proxy(memory, {
      get(target, name) {
        const member = Reflect.get(target, name) as unknown;
        if (typeof member !== "function") return member;
        return (...args: unknown[]) => {
          if (hangs && name === "ping") return new Promise(() => undefined);
          return Reflect.apply(member, target, args) as unknown;
        };
      },
    }) as Store;
    const { get } = await startService({ store });
    assert.equal((await get("/ready")).status, 200);
    hangs = true;
    assert.equal((await get("/ready")).status, 503);
  });
});
