import assert from "node:assert/strict";
import { backOffMs, retryAfterMs } from "#src/service/hooks/webhooks/retry.js";

const HOUR = 3600_000;

describe("back-off of webhooks", () => {
  it("begins with 5 s, triples, and stays at 6 h", () => {
    const waits: number[] = [];
    for (let ageMs = 0; ageMs < 24 * HOUR; ageMs += waits.at(-1)!) {
      waits.push(backOffMs({ ageMs, before: waits.length }, () => 0));
    }
    assert.deepEqual(waits.slice(0, 4), [5000, 15_000, 45_000, 135_000]);
    assert.equal(Math.max(...waits), 6 * HOUR);
    assert.ok(waits.length >= 10 && waits.length <= 14, `${waits.length} attempts in a day`);
  });

  it("varies by a quarter at most, and never falls below zero", () => {
    const wait = (ageMs: number, before: number, random = 0) => backOffMs({ ageMs, before }, () => random);
    assert.equal(wait(0, 0, 1), 3750);
    assert.equal(wait(-1000, 3), 5000);
  });

  it("begins anew for a delivery that is sent again, and is short after an outage of the service", () => {
    const wait = (ageMs: number, before: number) => backOffMs({ ageMs, before }, () => 0);
    assert.deepEqual([wait(0, 20), wait(5000, 20)], [5000, 15_000]);
    assert.deepEqual([wait(5 * HOUR, 0), wait(5 * HOUR, 1)], [5000, 15_000]);
  });

  it("reads Retry-After of a busy receiver, in seconds or as a date, bounded", () => {
    const now = Date.parse("Wed, 01 Jan 2025 00:00:00 GMT");
    assert.equal(retryAfterMs(429, "120", now), 120_000);
    assert.equal(retryAfterMs(503, "Wed, 01 Jan 2025 00:10:00 GMT", now), 600_000);
    assert.equal(retryAfterMs(503, "Tue, 31 Dec 2024 00:00:00 GMT", now), 0);
    assert.equal(retryAfterMs(503, "9".repeat(20), now), 6 * HOUR);
    for (const header of [undefined, "soon", "-5", "9".repeat(1000)]) assert.equal(retryAfterMs(429, header, now), 0);
    assert.equal(retryAfterMs(500, "120", now), 0);
  });
});
