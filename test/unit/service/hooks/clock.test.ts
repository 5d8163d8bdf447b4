import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { steadyWall, systemClock } from "#src/service/hooks/clock.js";
import { FakeClock } from "../../../helpers/hooks/fake-clock.js";

describe("systemClock", () => {
  it("calls back once, unless cancelled", async () => {
    let calls = 0;
    systemClock.setTimer(1, () => calls++, true);
    systemClock.setTimer(1, () => calls++, true).cancel();
    systemClock.setTimer(-5, () => calls++, true);
    await sleep(30);
    assert.equal(calls, 2);
  });

  it("waits longer than Node's limit of 24.8 days", async () => {
    let calls = 0;
    const timer = systemClock.setTimer(2 ** 40, () => calls++);
    await sleep(20);
    assert.equal(calls, 0);
    timer.cancel();
  });

  it("never goes back", () => {
    const first = systemClock.monotonic();
    assert.ok(systemClock.monotonic() >= first);
  });
});

describe("steadyWall", () => {
  it("follows the monotonic clock when the wall clock jumps", async () => {
    const clock = new FakeClock(5_000_000);
    const steady = steadyWall(clock);
    assert.equal(steady(), 5_000_000);
    clock.jumpWall(-1_000_000);
    await clock.advance(250);
    assert.equal(steady(), 5_000_250);
  });

  it("continues from a stored mark that is ahead of the wall clock", async () => {
    const clock = new FakeClock(5_000_000);
    const steady = steadyWall(clock);
    steady.notBefore(4_000_000);
    assert.equal(steady(), 5_000_000);
    steady.notBefore(6_000_000);
    await clock.advance(250);
    assert.equal(steady(), 6_000_250);
  });
});
