import assert from "node:assert/strict";
import { serviceStarter, until } from "../../../../../helpers/hooks/hook-service.js";

const startService = serviceStarter();

const json = async (response: Response) => [response.status, await response.json()];

describe("queue routes", () => {
  it("pause and resume, with the numbers of runs; each twice changes nothing", async () => {
    const { get, post, start } = await startService();
    const idle = { ok: true, paused: false, queued: 0, running: 0 };
    assert.deepEqual(await json(await get("/api/queue")), [200, idle]);
    for (let i = 0; i < 2; i++) {
      assert.deepEqual(await json(await post("/api/queue/pause", {})), [200, { ...idle, paused: true }]);
    }
    const { status_url } = await start("hello");
    assert.deepEqual(await json(await get("/api/queue")), [200, { ...idle, paused: true, queued: 1 }]);
    await post("/api/queue/resume", {});
    await until(async () => ((await (await get(status_url)).json()) as { status: string }).status === "succeeded");
    assert.deepEqual(await json(await post("/api/queue/resume", {})), [200, idle]);
  });

  it("need the token and POST", async () => {
    const { url, get } = await startService();
    assert.equal((await fetch(`${url}/api/queue`)).status, 401);
    assert.equal((await fetch(`${url}/api/queue/pause`, { method: "POST" })).status, 401);
    assert.equal((await get("/api/queue/pause")).status, 405);
  });
});
