import assert from "node:assert/strict";
import { createPreviewHost } from "latentkit";
import { classicStarter } from "../../../../../helpers/hooks/classic-service.js";

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
