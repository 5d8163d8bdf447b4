import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Host, render, validateGraph } from "latentkit";
import { createCheckpointHost } from "latentkit/models";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { f32, writeWeights } from "../../../../helpers/models/weight-file.js";

const text = (value: string): Buffer => {
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(value.length));
  return Buffer.concat([length, Buffer.from(value)]);
};
/** The beginning of a GGUF file of an architecture. */
function gguf(architecture: string): Buffer {
  const head = Buffer.alloc(24);
  head.write("GGUF");
  head.writeUInt32LE(3, 4);
  head.writeBigUInt64LE(1n, 16);
  return Buffer.concat([head, text("general.architecture"), Buffer.from([8, 0, 0, 0]), text(architecture)]);
}

describe("model files that a checkpoint host cannot load", () => {
  const folder = temporaryFolder();
  let host: Host;
  const file = (name: string) => {
    const path = join(folder(), name);
    mkdirSync(dirname(path), { recursive: true });
    return path;
  };
  beforeEach(() => {
    writeFileSync(file("unet/flux1-dev-Q4_K_S.gguf"), gguf("flux"));
    writeWeights(file("unet/flux1-dev.safetensors"), { "double_blocks.0.img_attn.qkv.weight": f32([1]) });
    writeWeights(file("unet/good.safetensors"), {
      "input_blocks.0.0.weight": f32([8, 4, 3, 3]),
      "out.2.weight": f32([4, 8, 3, 3]),
    });
    writeFileSync(file("checkpoints/v1-5-pruned.ckpt"), "PK\x03\x04 and more");
    writeFileSync(file("vae/odd.pt"), "\x80\x02", "latin1");
    writeWeights(file("clip/t5xxl.safetensors"), {
      "encoder.block.0.layer.0.SelfAttention.q.weight": f32([1]),
    });
    host = createCheckpointHost({ models: folder() });
  });
  const unet = (unet_name: string) => ({
    "3": { class_type: "UNETLoader", inputs: { unet_name, weight_dtype: "default" } },
  });
  const cannot = (what: string) => `The graph cannot run here: ${what}.`;
  const cases: readonly (readonly [object, string])[] = [
    [unet("flux1-dev-Q4_K_S.gguf"), "Flux (node 3, flux1-dev-Q4_K_S.gguf: GGUF)"],
    [unet("flux1-dev.safetensors"), "Flux (node 3, flux1-dev.safetensors)"],
    [
      { "3": { class_type: "CheckpointLoaderSimple", inputs: { ckpt_name: "v1-5-pruned.ckpt" } } },
      "pickle of PyTorch (node 3, v1-5-pruned.ckpt)",
    ],
    [{ "3": { class_type: "VAELoader", inputs: { vae_name: "odd.pt" } } }, "pickle of PyTorch (node 3, odd.pt)"],
    [
      { "3": { class_type: "CLIPLoader", inputs: { clip_name: "t5xxl.safetensors", type: "stable_diffusion" } } },
      "text encoder (T5) (node 3, t5xxl.safetensors)",
    ],
  ];

  it("are refused by validation and before a run, in the same sentence", async () => {
    for (const [graph, what] of cases) {
      const { nodeErrors, ok } = validateGraph(graph, { host, targets: ["3"] });
      assert.equal(ok, false, what);
      assert.deepEqual(
        nodeErrors["3"]?.errors.map(({ sentence, code }) => [sentence, code]),
        [[cannot(what), "model.unsupported"]],
      );
      const run = render(graph, { host, targets: ["3"], output: "memory" });
      await refuses(run, "model.unsupported", new RegExp(cannot(what).replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")));
    }
  });

  it("are none of the choices", () => {
    assert.deepEqual(host.files?.("diffusion_models"), ["good.safetensors"]);
    for (const kind of ["vae", "text_encoders"] as const) assert.deepEqual(host.files?.(kind), []);
    assert.deepEqual(host.checkpoints(), []);
    const [error] = validateGraph(unet("other.safetensors"), { host, targets: ["3"] }).nodeErrors["3"]!.errors;
    assert.match(error!.sentence, /expected good\.safetensors, received "other\.safetensors"/);
  });
});
