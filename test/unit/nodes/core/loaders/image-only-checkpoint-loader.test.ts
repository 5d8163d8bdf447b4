import assert from "node:assert/strict";
import { createPreviewHost, invokeNode } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { fileHost } from "../../../../helpers/graph/file-host.js";

describe("ImageOnlyCheckpointLoader", () => {
  const ckpt_name = "preview-sd15.safetensors";

  it("loads a checkpoint with its encoder of pictures", async () => {
    const checkpoint = await fileHost().loadCheckpoint(ckpt_name);
    const host = { ...fileHost(), loadCheckpoint: async () => checkpoint };
    const { model, vae, clipVision } = checkpoint;
    assert.deepEqual((await invokeNode("ImageOnlyCheckpointLoader", { ckpt_name }, { host })).result, [
      model,
      clipVision,
      vae,
    ]);
  });

  it("refuses a checkpoint without one", async () => {
    const refused = invokeNode("ImageOnlyCheckpointLoader", { ckpt_name }, { host: createPreviewHost() });
    await refuses(
      refused,
      "host.missing",
      /host "preview": it has no CLIP vision model in "preview-sd15.safetensors"\.$/,
    );
  });
});
