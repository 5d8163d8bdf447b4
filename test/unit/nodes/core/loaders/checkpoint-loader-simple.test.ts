import assert from "node:assert/strict";
import { createPreviewHost, invokeNode } from "latentkit";
import type { Checkpoint } from "#src/host/types.js";
import { refuses } from "../../../../helpers/errors.js";

describe("CheckpointLoaderSimple", () => {
  it("loads what the host offers", async () => {
    const host = createPreviewHost({ checkpoints: { "old-anime.ckpt": "sdxl" } });
    const load = (ckpt_name: unknown) => invokeNode("CheckpointLoaderSimple", { ckpt_name }, { host });
    const { model, clip, vae }: Checkpoint = await host.loadCheckpoint("old-anime.ckpt");
    assert.deepEqual((await load("old-anime.ckpt")).result, [model, clip, vae]);
    await refuses(load("old-anmie.ckpt"), "input.not-in-list", /ckpt_name/, /Did you mean old-anime.ckpt\?/);
    await refuses(load(undefined), "input.missing", /ckpt_name/);
  });
});
