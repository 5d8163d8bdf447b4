import assert from "node:assert/strict";
import { backOffMs, retryAfterMs } from "#src/service/hooks/webhooks/retry.js";

const HOUR = 3600_000;

describe("back-off of webhooks", () => {
  it("begins with 5 s, triples, and stays at 6 h", () => {
    const waits: number[] = [];
    for (let age = 0; age < 24 * HOUR; age += waits.at(-1)!) waits.push(backOffMs(age, () => 0));
    assert.deepEqual(waits.slice(0, 4), [5000, 15_000, 45_000, 135_000]);
    assert.equal(Math.max(...waits), 6 * HOUR);
    assert.ok(waits.length >= 10 && waits.length <= 14, `${waits.length} attempts in a day`);
  });

  it("varies by a quarter at most, and never falls below zero", () => {
    assert.equal(
      backOffMs(0, () => 1),
      3750,
    );
    assert.equal(
      backOffMs(-1000, () => 0),
      5000,
    );
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
