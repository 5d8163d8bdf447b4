import assert from "node:assert/strict";
import { createPreviewHost, type Host, invokeNode, type Model, modelSampling, Tensor, validateGraph } from "latentkit";
import { derivedModel } from "#src/host/derived-model.js";
import type { Checkpoint } from "#src/host/types.js";
import { scale } from "#src/tensor/ops.js";
import { refuses } from "../../../helpers/errors.js";
import { fileHost, layeredClip, type PatchableModel, patchable } from "../../../helpers/graph/file-host.js";
import { describeLoader } from "../../../helpers/graph/loader-tests.js";
import { patchesOf } from "../../../helpers/graph/patch-tests.js";
import { assertSame } from "../../../helpers/same.js";
import { assertSameBits } from "../../../helpers/tensor/bits.js";

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

/** Checks that a model estimates as another one does, times a factor. */
async function assertFactor(actual: Model, own: Model, factor: number): Promise<void> {
  const x = Tensor.from(
    Float32Array.from({ length: 256 }, (_, i) => Math.sin(i)),
    [1, 4, 8, 8],
  );
  const cond = (await createPreviewHost().loadCheckpoint("preview-sd15.safetensors")).clip.encoders[0]!;
  const tokens: [Tensor, object] = [(await cond.encode([Array(77).fill(1)])).cond, {}];
  const [a, b] = await Promise.all([actual, own].map((model) => model.predict!(x, 1, [tokens as never])));
  assertSameBits(a, scale(b!, factor));
}

describe("LoraLoader", () => {
  const host = fileHost();
  const apply = async (inputs: object) =>
    (await invokeNode("LoraLoader", { lora_name: "loras.safetensors", ...inputs }, { host })).result;
  const strengths = (model: number, clip: number) => ({ strength_model: model, strength_clip: clip });

  it("changes model and clip by their strengths", async () => {
    const [model, clip] = [await patchable(), layeredClip("l")];
    const [changed, ofClip] = await apply({ model, clip, ...strengths(0.5, 1) });
    assert.equal((ofClip as typeof clip).layer, -2);
    await assertFactor(changed, model, 1.5);
    assert.equal((await apply({ model, clip, ...strengths(0.5, 0) }))[1], clip);
  });

  it("gives the host its own model, and keeps what was derived from it", async () => {
    const own = await patchable();
    const sampling = modelSampling("sd15", { zsnr: true });
    const after = [(x: Tensor) => x];
    const model = derivedModel(derivedModel(own, { sampling }), { guidance: () => ({ after }) });
    const [changed] = await apply({ model, clip: layeredClip("l"), ...strengths(1, 1) });
    assert.equal(changed.sampling, sampling);
    assert.deepEqual(changed.guidance, { after });
    await assertFactor(changed, own, 2);
  });

  it("returns its inputs if both strengths are 0, without any LoRA", async () => {
    const [model, clip] = [await patchable(), layeredClip("l")];
    const inputs = { model, clip, lora_name: "nothing", ...strengths(0, 0) };
    assertSame((await invokeNode("LoraLoader", inputs)).result, [model, clip]);
  });

  it("is refused before a run if the host has no LoRAs, by node and host", () => {
    const graph = {
      "1": { class_type: "CheckpointLoaderSimple", inputs: { ckpt_name: "preview-sd15.safetensors" } },
      "5": {
        class_type: "LoraLoader",
        inputs: { model: ["1", 0], clip: ["1", 1], lora_name: "x.safetensors", ...strengths(1, 1) },
      },
    };
    const [error] = validateGraph(graph, { targets: ["5"] }).nodeErrors["5"]!.errors;
    assert.equal(error!.sentence, 'The graph cannot run here: LoraLoader (node 5, host "preview" has no LoRAs).');
  });

  it("refuses a name from a link that the host does not list", async () => {
    const model = await patchable();
    const inputs = { model, clip: layeredClip("l"), ...strengths(1, 1), lora_name: "../../etc/passwd" };
    await refuses(invokeNode("LoraLoader", inputs, { host }), "input.not-in-list", /passwd/);
  });
});

describe("LoraLoaderModelOnly", () => {
  const lora_name = "loras.safetensors";

  it("changes a model alone", async () => {
    const calls: unknown[] = [];
    const lora = {
      apply: (model: PatchableModel, clip: unknown, strengths: object) => {
        calls.push([clip, strengths]);
        return [model.weighed(3)];
      },
    };
    const host: Host = { ...fileHost(), loadFile: async () => lora as never };
    const model = await patchable();
    const { result } = await invokeNode("LoraLoaderModelOnly", { model, lora_name, strength_model: -0.25 }, { host });
    await assertFactor(result[0], model, 3);
    assert.deepEqual(calls, [[undefined, { model: -0.25, clip: 0 }]]);
  });

  it("returns the model if the strength is 0, else says what the host lacks", async () => {
    const model = await patchable();
    const load = (strength_model: number) => invokeNode("LoraLoaderModelOnly", { model, lora_name, strength_model });
    assertSame((await load(0)).result, [model]);
    await refuses(load(1), "host.missing", /^LoraLoaderModelOnly: host "preview" has no LoRAs\.$/);
  });
});

describe("HypernetworkLoader", () => {
  const inputs = async (strength: number) => ({
    model: await patchable(),
    hypernetwork_name: "hypernetworks.safetensors",
    strength,
  });

  it("hands the host its hypernetwork and the strength", async () => {
    const hypernetwork = { layers() {} };
    const host: Host = { ...fileHost(), loadFile: async () => hypernetwork as never };
    const { result } = await invokeNode("HypernetworkLoader", await inputs(0.5), { host });
    const [patch] = patchesOf(result[0]);
    assert.deepEqual(patch, { node: "HypernetworkLoader", inputs: { hypernetwork, strength: 0.5 } });
  });

  it("returns the model if the strength is 0, else says what the host lacks", async () => {
    const neutral = await inputs(0);
    assert.deepEqual((await invokeNode("HypernetworkLoader", neutral)).result, [neutral.model]);
    await refuses(invokeNode("HypernetworkLoader", await inputs(1)), "host.missing", /has no hypernetworks\.$/);
  });
});
