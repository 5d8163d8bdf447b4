import assert from "node:assert/strict";
import { createMemoryStore } from "#src/service/hooks/store/memory-store.js";
import { serviceStarter } from "../../../../../helpers/hooks/hook-service.js";
import { newRun } from "../../../../../helpers/hooks/new-run.js";

const startService = serviceStarter();

const json = async (response: Response) => (await response.json()) as Record<string, unknown>;

describe("POST /api/runs/{id}/again", () => {
  it("starts a new run with message, name, session and time of the earlier one", async () => {
    const config = { hooks_allow_request_session_key: true };
    const { start, post, hooks } = await startService({ config });
    const first = await start("a lake", { name: "CI", sessionKey: "hook:x", timeoutSeconds: 77, priority: 3 });
    // neither a body nor a content type
    const response = await post(`/api/runs/${first.run_id}/again`, "", { "content-type": "" });
    const payload = await json(response);
    assert.equal(response.status, 200, String(payload.error));
    assert.notEqual(payload.run_id, first.run_id);
    const { message, name, sessionKey, timeoutSeconds, origin, priority } = await hooks.runs.get(
      String(payload.run_id),
    );
    assert.deepEqual([message, name, sessionKey, timeoutSeconds, origin], ["a lake", "CI", "hook:x", 77, "agent"]);
    assert.equal(priority, 3);
    assert.equal(response.headers.get("location"), `/api/runs/${payload.run_id}`);
  });

  it("takes a changed message, name and time, and waits for the result", async () => {
    const { start, post, hooks } = await startService();
    const { run_id } = await start("a lake", { name: "CI" });
    const changed = { message: "a fox", name: "me", timeoutSeconds: 9, priority: -7 };
    const again = await json(await post(`/api/runs/${run_id}/again`, changed, { prefer: "wait=10" }));
    assert.deepEqual(
      [again.status, again.response, again.name, again.timeout_seconds, again.priority],
      ["succeeded", "a fox", "me", 9, -7],
    );
    assert.equal((await hooks.runs.get(run_id)).message, "a lake");
  });

  it("starts one run for each key, and refuses the key with another payload", async () => {
    const { start, post, hooks } = await startService();
    const [one, two] = [await start("one"), await start("two")];
    const again = (id: string, body: object) => post(`/api/runs/${id}/again`, body, { "idempotency-key": "k" });
    const ids = [await again(one.run_id, {}), await again(one.run_id, {}), await again(two.run_id, {})];
    const [first, same, other] = await Promise.all(ids.map(async (response) => (await json(response)).run_id));
    assert.equal(first, same);
    assert.notEqual(first, other);
    assert.equal((await again(one.run_id, { message: "another" })).status, 422);
    assert.equal((await hooks.runs.list({ limit: 10 })).runs.length, 4);
  });

  it("runs a wake and a heartbeat again without the agent's check of messages", async () => {
    const check = (message: string) => {
      throw new Error(`checked ${message}`);
    };
    const agent = Object.assign(async () => ({ response: "" }), { check });
    const { post, hooks } = await startService({ agent });
    await post("/hooks/wake", { text: "up", mode: "next-heartbeat" });
    const { runs } = await hooks.heartbeat();
    const payload = await json(await post(`/api/runs/${runs[0]!.runId}/again`, {}));
    const run = await hooks.runs.get(String(payload.run_id));
    assert.deepEqual([run.message, run.origin], ["System event: up", "wake"]);
    assert.equal((await post(`/api/runs/${run.id}/again`, { message: "x" })).status, 500);
  });

  it("holds the session policy and the limits of starts", async () => {
    const limits = { starts_per_10s: 2 };
    const { start, post } = await startService({ config: { limits } });
    const { run_id } = await start("x");
    const denied = await post(`/api/runs/${run_id}/again`, { sessionKey: "hook:y" });
    assert.deepEqual([denied.status, (await json(denied)).code], [400, "session_key_override_disabled"]);
    assert.equal((await post(`/api/runs/${run_id}/again`, {})).status, 200);
    assert.equal((await post(`/api/runs/${run_id}/again`, {})).status, 429);
  });

  for (const [what, path, body, status] of [
    ["an unknown run", "6f9619ff-8b86-4d01-b42d-00cf4fc964ff", {}, 404],
    ["__proto__", "__proto__", {}, 404],
    ["a blank message", undefined, { message: " " }, 400],
    ["a message that is no text", undefined, { message: 5 }, 400],
    ["no object", undefined, [], 400],
    ["broken JSON", undefined, "{", 400],
  ] as const) {
    it(`${what}: ${status}`, async () => {
      const { start, post, hooks } = await startService();
      const { run_id } = await start("x");
      assert.equal((await post(`/api/runs/${path ?? run_id}/again`, body)).status, status);
      assert.equal((await hooks.runs.list({ limit: 10 })).runs.length, 1);
    });
  }

  it("refuses a run of a batch, which no request starts", async () => {
    const store = createMemoryStore();
    const { post, hooks } = await startService({ store });
    await hooks.runs.open();
    const id = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff";
    await store.createRun(newRun(id, { sessionKey: "batch-a-0", origin: "batch", createdAt: 1, createdMark: 1 }));
    const response = await post(`/api/runs/${id}/again`, {});
    assert.equal(response.status, 400);
    assert.match(await response.text(), /a run of a batch is started by `latentkit render --store` alone/);
  });

  it("needs the token", async () => {
    const { start, url } = await startService();
    const { run_id, stream_url } = await start("x");
    const signed = stream_url.slice(stream_url.indexOf("?"));
    assert.equal((await fetch(`${url}/api/runs/${run_id}/again${signed}`, { method: "POST" })).status, 401);
  });
});
