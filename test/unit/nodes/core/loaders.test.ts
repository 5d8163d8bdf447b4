import assert from "node:assert/strict";
import { createPreviewHost, invokeNode, modelSampling } from "latentkit";
import type { Checkpoint } from "#src/host/types.js";
import { refuses } from "../../../helpers/errors.js";
import { fileHost } from "../../../helpers/graph/file-host.js";
import { describeLoader } from "../../../helpers/graph/loader-tests.js";
import { assertSame } from "../../../helpers/same.js";

describe("CheckpointLoaderSimple", () => {
  it("loads what the host offers", async () => {
    const host = createPreviewHost({ checkpoints: { "old-anime.ckpt": "sdxl" } });
    const load = (ckpt_name: unknown) => invokeNode("CheckpointLoaderSimple", { ckpt_name }, { host });
    const { model, clip, vae }: Checkpoint = await host.loadCheckpoint("old-anime.ckpt");
    assertSame((await load("old-anime.ckpt")).result, [model, clip, vae]);
    await refuses(load("old-anmie.ckpt"), "input.not-in-list", /ckpt_name/, /Did you mean old-anime.ckpt\?/);
    await refuses(load(undefined), "input.missing", /ckpt_name/);
  });
});

describe("CheckpointLoader", () => {
  const ckpt_name = "preview-sd15.safetensors";
  const load = async (config_name: string, host = fileHost()) =>
    (await invokeNode("CheckpointLoader", { config_name, ckpt_name }, { host })).result;

  it("loads the checkpoint for a configuration of any name", async () => {
    const host = createPreviewHost();
    const { model, clip, vae } = await host.loadCheckpoint(ckpt_name);
    assertSame(await load("mine.yaml", host), [model, clip, vae]);
  });

  it("reads clip skip from the name of the configuration", async () => {
    const layer = async (name: string) => ((await load(name))[1] as unknown as { layer: number }).layer;
    assert.equal(await layer("v1-inference.yaml"), -1);
    assert.equal(await layer("v1-inference_clip_skip_2.yaml"), -2);
    assert.equal(await layer("anything_v3.yaml"), -2);
  });

  it("refuses clip skip if a clip has no layers, and checkpoints of no host", async () => {
    await refuses(
      load("anything_v3.yaml", noLayers()),
      "host.missing",
      /host ".+" has no earlier layers of a clip for anything_v3/,
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

for (const [key, outputs] of [
  ["unCLIPCheckpointLoader", ["model", "clip", "vae", "clipVision"]],
  ["ImageOnlyCheckpointLoader", ["model", "clipVision", "vae"]],
] as const) {
  describe(key, () => {
    const ckpt_name = "preview-sd15.safetensors";

    it("loads a checkpoint with its encoder of pictures", async () => {
      const checkpoint = await fileHost().loadCheckpoint(ckpt_name);
      const host = { ...fileHost(), loadCheckpoint: async () => checkpoint };
      const { result } = await invokeNode(key, { ckpt_name }, { host });
      assertSame(
        result,
        outputs.map((name) => checkpoint[name]),
      );
    });

    it("refuses a checkpoint without one", async () => {
      const refused = invokeNode(key, { ckpt_name }, { host: createPreviewHost() });
      const sentence = /host "preview" has no CLIP vision model in checkpoint "preview-sd15.safetensors"\.$/;
      await refuses(refused, "host.missing", sentence);
    });
  });
}

describeLoader("UNETLoader", "diffusion_models", "separate diffusion models", { weight_dtype: "default" });

describe("UNETLoader", () => {
  it("tells the host the type of the weights", async () => {
    const inputs = { unet_name: "diffusion_models.safetensors", weight_dtype: "fp8_e5m2" };
    const [model] = (await invokeNode("UNETLoader", inputs, { host: fileHost() })).result;
    assert.deepEqual((model as unknown as { settings: unknown }).settings, { weight_dtype: "fp8_e5m2" });
  });
});

describeLoader("UnetLoaderGGUF", "diffusion_models", "separate diffusion models");
describeLoader("VAELoader", "vae", "separate VAEs");
describeLoader("ControlNetLoader", "controlnet", "ControlNets");
describeLoader("DiffControlNetLoader", "controlnet", "ControlNets", { model: { sampling: modelSampling("sd15") } });
describeLoader("UpscaleModelLoader", "upscale_models", "upscale models");
describeLoader("CLIPVisionLoader", "clip_vision", "CLIP vision models");
describeLoader("StyleModelLoader", "style_models", "style models");
describeLoader("GLIGENLoader", "gligen", "GLIGEN models");
describeLoader("ModelPatchLoader", "model_patches", "model patches");
