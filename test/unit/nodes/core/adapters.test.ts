import assert from "node:assert/strict";
import { createPreviewHost, type Host, invokeNode, type Model, modelSampling, Tensor, validateGraph } from "latentkit";
import { derivedModel } from "#src/host/derived-model.js";
import { scale } from "#src/tensor/ops.js";
import { refuses } from "../../../helpers/errors.js";
import { fileHost, layeredClip, type PatchableModel, patchable } from "../../../helpers/graph/file-host.js";
import { patchesOf } from "../../../helpers/graph/patch-tests.js";
import { assertSame } from "../../../helpers/same.js";
import { assertSameBits } from "../../../helpers/tensor/bits.js";

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
