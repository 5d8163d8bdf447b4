import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type RunningService, startService } from "#src/service/server/start.js";
import { temporaryFolder } from "../../../helpers/folders.js";
import { until } from "../../../helpers/hooks/hook-runs.js";
import { newDatabase, postgres } from "../../../helpers/postgres/cluster.js";

const headers = { Authorization: "Bearer a-token-of-the-tests", "Content-Type": "application/json" };

describe("startService with store: postgres://…", () => {
  postgres();
  const folder = temporaryFolder();
  const open: RunningService[] = [];
  const start = async (store: string): Promise<RunningService> => {
    const module = join(folder(), "agent.mjs");
    writeFileSync(module, "export default async ({ message }) => ({ response: message.toUpperCase() });");
    const channels = { web: { hooks_token: "a-token-of-the-tests" } };
    const config = { port: 0, store, output_dir: folder(), agent: { module }, channels };
    const service = await startService(config, { log: () => undefined });
    open.push(service);
    return service;
  };
  afterEach(async () => {
    for (const service of open.splice(0)) await service.close(0);
  });

  it("keeps runs over a restart, and their streams", async () => {
    const store = await newDatabase();
    const first = await start(store);
    const body = JSON.stringify({ message: "a fox" });
    const posted = await fetch(`${first.url}/hooks/agent`, { method: "POST", headers, body });
    const { run_id: id, status_url } = (await posted.json()) as { run_id: string; status_url: string };
    const state = async (service: RunningService) =>
      (await (await fetch(service.url + status_url, { headers })).json()) as { status?: string; state?: string };
    await until(async () => JSON.stringify(await state(first)).includes("succeeded"), "the end of the run");
    assert.equal((await fetch(`${first.url}/ready`)).status, 200);
    await first.close(0);
    const second = await start(store);
    assert.match(JSON.stringify(await state(second)), /succeeded/);
    const stream = await (await fetch(`${second.url}/api/stream?run_id=${id}`, { headers })).text();
    assert.match(stream, /event: done\ndata: \{"response":"A FOX"\}/);
  });

  it("starts beside another process on the same database, which runs what this one takes", async () => {
    const store = await newDatabase();
    const [first, second] = [await start(store), await start(store)];
    const ids = [];
    for (const [n, { url }] of [first, second, first, second].entries()) {
      const body = JSON.stringify({ message: `fox ${n}` });
      const posted = await fetch(`${url}/hooks/agent`, { method: "POST", headers, body });
      ids.push(((await posted.json()) as { run_id: string }).run_id);
    }
    for (const [n, id] of ids.entries()) {
      const { url } = n % 2 === 0 ? second : first;
      const stream = await (await fetch(`${url}/api/stream?run_id=${id}`, { headers })).text();
      assert.match(stream, new RegExp(`event: done\\ndata: \\{"response":"FOX ${n}"\\}`));
    }
  });
});
