import assert from "node:assert/strict";
import { createMemoryStore } from "#src/service/hooks/store/memory-store.js";
import { FakeClock } from "../../../../../helpers/hooks/fake-clock.js";
import { serviceStarter, until } from "../../../../../helpers/hooks/hook-service.js";

const startService = serviceStarter();
const DAY = 24 * 3600 * 1000;

describe("signed URL and the wall clock", () => {
  it("is valid for its full time after the clock was set", async () => {
    for (const jump of [-400 * DAY, 400 * DAY]) {
      const clock = new FakeClock();
      const service = await startService({ clock });
      clock.jumpWall(jump);
      const { stream_url } = await service.start("x");
      const status = async () => (await fetch(service.url + stream_url, { method: "HEAD" })).status;
      assert.equal(await status(), 200, `${jump / DAY} days`);
      await clock.advance(23 * 3600 * 1000);
      assert.equal(await status(), 200);
      // the longest wait, three attempts and the delays between them
      await clock.advance(6 * 3600 * 1000);
      assert.equal(await status(), 401, `${jump / DAY} days`);
    }
  });

  it("is unchanged in a replay after the clock was set back", async () => {
    const clock = new FakeClock();
    const { start } = await startService({ clock });
    clock.jumpWall(-3 * DAY);
    const first = await start("x", { idempotencyKey: "k" });
    clock.jumpWall(-3 * DAY);
    assert.deepEqual(await start("x", { idempotencyKey: "k" }), first);
  });

  it("is valid for a service that started after the clock was set back", async () => {
    const store = { ...createMemoryStore(), close: async () => undefined };
    const before = await startService({ clock: new FakeClock(Date.UTC(2030, 0, 1)), store });
    const old = await before.start("x");
    await until(async () => (await before.hooks.runs.get(old.run_id)).finishedAt !== null);
    await before.hooks.close(0);
    const after = await startService({ clock: new FakeClock(Date.UTC(2025, 0, 1)), store });
    const { stream_url } = await after.start("x");
    assert.equal((await fetch(after.url + stream_url)).status, 200);
    assert.equal((await fetch(after.url + old.stream_url)).status, 200);
  });
});
