import assert from "node:assert/strict";
import { createPreviewHost } from "latentkit";
import {
  classicStarter,
  ended,
  endless,
  quick,
  refusedSocket,
  submit,
} from "../../../../../helpers/hooks/classic-service.js";
import { bearer, until } from "../../../../../helpers/hooks/hook-service.js";

describe("facts of the classic API", () => {
  const start = classicStarter();

  it("describes nodes, models and machine; unknown nodes are empty, unknown paths plain 404", async () => {
    const service = await start();
    const json = async (path: string) => (await service.get(path)).json() as Promise<Record<string, never>>;
    const all = (await json("/object_info")) as Record<string, { input: { required: Record<string, unknown[]> } }>;
    const { checkpoints } = { checkpoints: [...createPreviewHost().checkpoints()] };
    assert.deepEqual(all.CheckpointLoaderSimple!.input.required.ckpt_name![0], checkpoints);
    assert.deepEqual(Object.keys(await json("/api/object_info/KSampler")), ["KSampler"]);
    assert.deepEqual(await json("/object_info/Primitive%20boolean"), {});
    assert.deepEqual(await json("/models/checkpoints"), checkpoints);
    assert.equal((await service.get("/models/__proto__")).status, 404);
    assert.ok(((await json("/models")) as unknown as string[]).includes("checkpoints"));
    assert.deepEqual([await json("/embeddings"), await json("/extensions")], [[], []]);
    assert.ok((await json("/system_stats")).system);
    assert.equal((await service.get("/manager/version")).status, 404);
  });
});

describe("queue and history of the classic API", () => {
  const start = classicStarter();

  it("queue: prompts of a client one after the other, in front, deleted, interrupted", async () => {
    const service = await start({ inThread: true });
    const { prompt_id: running } = await submit(service, endless(), { client_id: "me" });
    const { prompt_id: waiting } = await submit(service, quick(1), { client_id: "me" });
    const { prompt_id: front, number } = await submit(service, quick(2), { client_id: "me", front: true });
    assert.ok(number < 0);
    type Queue = { queue_running: [number, string][]; queue_pending: [number, string][] };
    const queue = async () => (await (await service.get("/queue")).json()) as Queue;
    await until(async () => (await queue()).queue_running.some(([, id]) => id === running), "the start");
    assert.deepEqual((await queue()).queue_pending.map(([, id]) => id).sort(), [waiting, front].sort());
    assert.deepEqual(await (await service.get("/prompt")).json(), { exec_info: { queue_remaining: 3 } });
    assert.deepEqual(await (await service.post("/queue", { delete: [waiting, "unknown"] })).json(), {});
    assert.equal((await ended(service, waiting)).status.messages.at(-1)![0], "execution_interrupted");
    assert.deepEqual(await (await service.post("/interrupt", { prompt_id: "unknown" })).json(), {});
    assert.deepEqual(await (await fetch(`${service.url}/interrupt`, { method: "POST", headers: bearer })).json(), {});
    await ended(service, running);
    assert.equal((await ended(service, front)).status.status_str, "success");
  });

  it("a prompt in front starts before those of its own client that wait", async () => {
    const service = await start({ inThread: true });
    const me = { client_id: "me" };
    const { prompt_id: running } = await submit(service, endless(), me);
    await until(async () => (await service.hooks.runs.status(running)).state === "running", "the start");
    const { prompt_id: waiting } = await submit(service, quick(1), me);
    const { prompt_id: front } = await submit(service, quick(2), { ...me, front: true });
    const { prompt_id: first } = await submit(service, quick(3), { ...me, front: true });
    await service.post("/interrupt", {});
    await ended(service, waiting);
    const starts = [first, front, waiting].map(async (id) => (await service.hooks.runs.status(id)).startedAt!);
    const times = await Promise.all(starts);
    assert.deepEqual(
      times,
      times.toSorted((a, b) => a - b),
    );
    assert.ok(times[0]! < times[2]!);
  });

  it("a field of another kind is refused by its name, and changes nothing", async () => {
    const service = await start();
    const { prompt_id: id } = await submit(service, quick(1));
    await ended(service, id);
    const refused = async (path: string, body: object) => {
      const response = await service.post(path, body);
      const { error } = (await response.json()) as { error: { type: string; message: string } };
      assert.deepEqual([response.status, error.type], [400, "invalid_request"], path);
      return error.message;
    };
    const flag = 'expected true or false, received "true"';
    assert.equal(await refused("/queue", { clear: "true" }), `clear: ${flag}`);
    assert.equal(await refused("/history", { clear: "true", delete: [id] }), `clear: ${flag}`);
    assert.equal(await refused("/prompt", { prompt: quick(1), front: "true" }), `front: ${flag}`);
    for (const client_id of ["x".repeat(257), "a\0b"]) {
      assert.match(await refused("/prompt", { prompt: quick(1), client_id }), /^client_id: expected at most 256 /);
      const path = `/ws?clientId=${encodeURIComponent(client_id)}`;
      assert.equal(await refusedSocket(service, path, bearer), 400);
    }
    assert.match(await refused("/history", { delete: id, clear: true }), /^delete: expected a list of /);
    assert.equal(await refused("/interrupt", { prompt_id: 5 }), "prompt_id: expected a text");
    assert.deepEqual(Object.keys((await (await service.get("/history")).json()) as object), [id]);
    await service.post("/history", { clear: 1, delete: null });
    assert.deepEqual(await (await service.get("/history")).json(), {});
    assert.ok((await submit(service, quick(2), { front: 1 })).number < 0);
  });

  it("history: newest entries in the order of their starts, deleted ones gone", async () => {
    const service = await start();
    const ids: string[] = [];
    for (let i = 0; i < 4; i++) {
      const { prompt_id: id } = await submit(service, quick(i));
      await ended(service, id);
      ids.push(id);
    }
    const list = async (query = "") => Object.keys((await (await service.get(`/history${query}`)).json()) as object);
    assert.deepEqual(await list(), ids);
    assert.deepEqual(await list("?max_items=2"), ids.slice(2));
    assert.deepEqual(await list("?max_items=2&offset=1"), ids.slice(1, 3));
    assert.equal((await service.get("/history?max_items=x")).status, 400);
    await service.post("/history", { delete: [ids[1]] });
    assert.deepEqual(await list(), [ids[0], ids[2], ids[3]]);
    await service.post("/history", { clear: true });
    assert.deepEqual(await list(), []);
    // a run of a hook is no prompt
    const { run_id } = await service.start("{}");
    assert.deepEqual(await (await service.get(`/history/${run_id}`)).json(), {});
  });
});
