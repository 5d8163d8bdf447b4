import assert from "node:assert/strict";
import { createPreviewHost, invokeNode } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { fileHost } from "../../../../helpers/graph/file-host.js";

describe("CheckpointLoader", () => {
  const ckpt_name = "preview-sd15.safetensors";
  const load = async (config_name: string, host = fileHost()) =>
    (await invokeNode("CheckpointLoader", { config_name, ckpt_name }, { host })).result;

  it("loads the checkpoint for a configuration of any name", async () => {
    const host = createPreviewHost();
    const { model, clip, vae } = await host.loadCheckpoint(ckpt_name);
    assert.deepEqual(await load("mine.yaml", host), [model, clip, vae]);
  });

  it("reads clip skip from the name of the configuration", async () => {
    const layer = async (name: string) => ((await load(name))[1] as unknown as { layer: number }).layer;
    assert.equal(await layer("v1-inference.yaml"), -1);
    assert.equal(await layer("v1-inference_clip_skip_2.yaml"), -2);
    assert.equal(await layer("anything_v3.yaml"), -2);
  });

  it("refuses clip skip where a clip has no layers, and checkpoints of no host", async () => {
    await refuses(
      load("anything_v3.yaml", noLayers()),
      "host.missing",
      /no earlier layers of a clip, which anything_v3/,
    );
    const inputs = { config_name: "a.yaml", ckpt_name: "b.ckpt" };
    await refuses(invokeNode("CheckpointLoader", inputs), "input.not-in-list", /ckpt_name/);
  });

  function noLayers() {
    const host = fileHost();
    const loadCheckpoint = async (name: string) => {
      const checkpoint = await host.loadCheckpoint(name);
      return { ...checkpoint, clip: { encoders: checkpoint.clip.encoders } };
    };
    return { ...host, loadCheckpoint };
  }
});
