import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { createAuthBudget, RateWindow } from "#src/service/hooks/http/access/rates.js";
import { addressKey, clientKey } from "#src/service/hooks/http/gate.js";
import { FakeClock } from "../../../../../helpers/hooks/fake-clock.js";
import { bearer, serviceStarter } from "../../../../../helpers/hooks/hook-service.js";

const startService = serviceStarter();

const wrong = { authorization: "Bearer wrong" };

describe("failed-auth budget", () => {
  it("the 21st failure in a minute is a 429, the right token still a 200", async () => {
    const { get } = await startService();
    for (let i = 0; i < 20; i++) assert.equal((await get("/api/runs", wrong)).status, 401);
    const refused = await get("/api/runs", wrong);
    assert.equal(refused.status, 429);
    assert.equal(((await refused.json()) as { code: string }).code, "auth_rate_limited");
    const retry = Number(refused.headers.get("retry-after"));
    assert.ok(retry >= 1 && retry <= 60, `Retry-After ${retry}`);
    assert.equal((await get("/api/runs")).status, 200);
    assert.equal((await get("/api/runs", wrong)).status, 429);
  });

  it("is shared by all guarded paths and signatures", async () => {
    const { url } = await startService({ config: { limits: { failed_auth_per_minute: 3 } } });
    const id = "00000000-0000-4000-8000-000000000000";
    const paths = ["/api/runs", `/api/stream?run_id=${id}&expires=9999999999&signature=x`, `/api/runs/${id}/files/a`];
    for (const path of paths) assert.equal((await fetch(url + path)).status, 401);
    for (const path of paths) assert.equal((await fetch(url + path)).status, 429);
    assert.equal((await fetch(`${url}/health`)).status, 200);
  });

  it("wrong methods and unknown paths do not count", async () => {
    const { url } = await startService({ config: { limits: { failed_auth_per_minute: 2 } } });
    for (let i = 0; i < 5; i++) assert.equal((await fetch(`${url}/hooks/agent`, { headers: wrong })).status, 405);
    for (let i = 0; i < 5; i++) assert.equal((await fetch(`${url}/hooks/other`, { headers: wrong })).status, 404);
    assert.equal((await fetch(`${url}/hooks/agent`, { method: "POST", headers: wrong })).status, 401);
  });

  it("ignores X-Forwarded-For without trust_proxy", async () => {
    const { get } = await startService({ config: { limits: { failed_auth_per_minute: 2 } } });
    const statuses = [];
    for (let i = 1; i <= 4; i++) {
      statuses.push((await get("/api/runs", { ...wrong, "x-forwarded-for": `203.0.113.${i}` })).status);
    }
    assert.deepEqual(statuses, [401, 401, 429, 429]);
  });

  it("with trust_proxy counts the address that the nearest proxy appended", async () => {
    const config = { trust_proxy: true, limits: { failed_auth_per_minute: 1 } };
    const { get } = await startService({ config });
    const from = async (forwarded: string) =>
      (await get("/api/runs", { ...wrong, "x-forwarded-for": forwarded })).status;
    assert.equal(await from("1.1.1.1, 203.0.113.1"), 401);
    assert.equal(await from("2.2.2.2, 203.0.113.1"), 429);
    assert.equal(await from("2.2.2.2, 203.0.113.2"), 401);
    assert.equal(await from("nonsense"), 401);
    assert.equal(await from("other nonsense"), 429);
  });

  it("forgets a failure after a minute, whatever the wall clock does", async () => {
    const clock = new FakeClock();
    const budget = createAuthBudget({ limit: 2, clock });
    const kind = () => budget.refusal("client").kind;
    assert.deepEqual([kind(), kind(), kind()], ["unauthorized", "unauthorized", "auth_rate_limited"]);
    clock.jumpWall(24 * 3600 * 1000);
    assert.equal(kind(), "auth_rate_limited");
    await clock.advance(59_999);
    assert.equal(kind(), "auth_rate_limited");
    await clock.advance(1);
    assert.equal(kind(), "unauthorized");
  });

  it("the right token does not count", async () => {
    const { get } = await startService({ config: { limits: { failed_auth_per_minute: 1 } } });
    for (let i = 0; i < 5; i++) assert.equal((await get("/api/runs", bearer)).status, 200);
    assert.equal((await get("/api/runs", wrong)).status, 401);
  });
});

describe("client addresses", () => {
  const same: [string, string][] = [
    ["192.0.2.7", "::ffff:192.0.2.7"],
    ["192.0.2.7", "::FFFF:c000:207"],
    ["192.0.2.7", "0:0:0:0:0:ffff:192.0.2.7"],
    ["2001:db8:1:2::1", "2001:0db8:0001:0002:ffff:ffff:ffff:ffff"],
    ["fe80::1%eth0", "fe80::2"],
    ["::1", "::2"],
  ];
  for (const [a, b] of same) it(`${a} and ${b} are one`, () => assert.equal(addressKey(a), addressKey(b)));

  const other: [string, string][] = [
    ["192.0.2.7", "192.0.2.8"],
    ["2001:db8:1:2::1", "2001:db8:1:3::1"],
    ["::192.0.2.7", "192.0.2.7"],
  ];
  for (const [a, b] of other) it(`${a} and ${b} are two`, () => assert.notEqual(addressKey(a), addressKey(b)));

  it("a text that is no address has no key", () => {
    for (const text of ["", "unknown", "1.2.3", "1.2.3.4:80", "[::1]", "::g"])
      assert.equal(addressKey(text), undefined);
  });
});

describe("X-Forwarded-For", () => {
  const keyOf = (forwarded: string, isTrusted = true) =>
    clientKey(
      {
        headers: { "x-forwarded-for": forwarded },
        socket: { remoteAddress: "10.0.0.1" },
      } as unknown as IncomingMessage,
      isTrusted,
    );

  it("with trust_proxy: the last address, with or without a port", () => {
    for (const address of ["192.0.2.7", "192.0.2.7:4711", "1.1.1.1, 192.0.2.7:80", "[::ffff:192.0.2.7]:1"]) {
      assert.equal(keyOf(address), "192.0.2.7", address);
    }
    for (const address of ["2001:db8:1:2::1", "[2001:db8:1:2::3]", "[2001:db8:1:2::3]:4711"]) {
      assert.equal(keyOf(address), "2001:db8:1:2::/64", address);
    }
  });

  it("without trust_proxy or an address: the connection's address", () => {
    assert.equal(keyOf("192.0.2.7", false), "10.0.0.1");
    for (const text of ["", "unknown", "_hidden:80", "192.0.2.7:x", "192.0.2:80", "[::1", "[x]:1", "192.0.2.7,"]) {
      assert.equal(keyOf(text), "10.0.0.1", text);
    }
  });
});

describe("rate window", () => {
  it("never allows more than the limit in any window", async () => {
    const clock = new FakeClock();
    const window = new RateWindow({ limit: 3, windowMs: 1000, clock });
    const counted: number[] = [];
    for (let i = 0; i < 400; i++) {
      if (window.waitMs("k") === 0) {
        window.count("k");
        counted.push(clock.monotonic());
      }
      await clock.advance(i % 7 === 0 ? 130 : 3);
    }
    for (const [i, time] of counted.entries()) {
      const fourth = counted[i + 3];
      if (fourth !== undefined) assert.ok(fourth - time >= 1000, `four within ${fourth - time} ms`);
    }
    assert.ok(counted.length > 20);
  });

  it("holds at most maxKeys keys and no expired one", async () => {
    const clock = new FakeClock();
    const window = new RateWindow({ limit: 2, windowMs: 1000, clock, maxKeys: 100 });
    for (let i = 0; i < 1000; i++) window.count(`k${i}`);
    assert.equal(window.size, 100);
    await clock.advance(2000);
    for (let i = 0; i < 100; i++) window.count(`n${i % 2}`);
    assert.equal(window.size, 2);
  });
});
