import assert from "node:assert/strict";
import { createPreviewHost, type Host, render, type Tensor } from "latentkit";
import type { Receipt } from "#src/render/receipt/receipt.js";
import { temporaryFolder } from "../../../helpers/folders.js";
import { node } from "../../../helpers/graph/graph-nodes.js";
import { receiptOf } from "../../../helpers/graph/receipt-graphs.js";

const HASH = "0a".repeat(32);

const painted = (prefix = "a") => ({
  "1": node("CheckpointLoaderSimple", { ckpt_name: "preview-sd15.safetensors" }),
  "2": node("CheckpointLoaderSimple", { ckpt_name: "preview-sdxl.safetensors" }),
  "3": node("CLIPTextEncode", { text: "embedding:ink", clip: ["1", 1] }),
  "4": node("EmptyLatentImage", { width: 64, height: 64, batch_size: 1 }),
  "5": node("KSampler", {
    model: ["1", 0],
    positive: ["3", 0],
    negative: ["3", 0],
    latent_image: ["4", 0],
    seed: 7,
    steps: 2,
    cfg: 3,
    sampler_name: "euler",
    scheduler: "normal",
    denoise: 1,
  }),
  "6": node("VAEDecode", { samples: ["5", 0], vae: ["1", 2] }),
  "7": node("SaveImage", { images: ["6", 0], filename_prefix: prefix }),
});

describe("Host.provenance", () => {
  const folder = temporaryFolder();

  it("is asked when the run begins, with the names of the picture's own nodes, and told when it ends", async () => {
    const preview = createPreviewHost();
    const asked: [at: string, named: object][] = [];
    const signals: (AbortSignal | undefined)[] = [];
    let at = "before sampling";
    const host: Host = {
      ...preview,
      loadCheckpoint: async (name) => {
        const { vae, ...others } = await preview.loadCheckpoint(name);
        const decode = (latent: Tensor) => {
          at = "after sampling";
          return vae.decode(latent);
        };
        return { ...others, vae: { encode: (image) => vae.encode(image), decode } };
      },
      provenance: async (named, signal) => {
        asked.push([at, named]);
        signals.push(signal);
        return { models: { "checkpoints/preview-sd15.safetensors": HASH } };
      },
    };
    const { files, status } = await render(painted(), { host, outputDir: folder() });
    assert.equal(status, "success");
    const named = {
      files: [{ kind: "checkpoints", name: "preview-sd15.safetensors" }],
      texts: ["embedding:ink"],
    };
    assert.deepEqual(asked, [
      ["before sampling", named],
      ["after sampling", named],
    ]);
    assert.equal(signals[0]!.aborted, true);
    const { models, runtime } = receiptOf(files[0]!.path) as unknown as Receipt;
    assert.deepEqual([models, runtime], [{ "checkpoints/preview-sd15.safetensors": `sha256:${HASH}` }, undefined]);
  });

  it("is not asked for pictures without metadata, and its early failure is none of the run", async () => {
    let count = 0;
    const host: Host = {
      ...createPreviewHost(),
      provenance: async () => {
        if (++count === 1) throw new Error("too early");
        return { models: {} };
      },
    };
    await render(painted(), { host, outputDir: folder(), metadata: "none" });
    assert.equal(count, 0);
    const { status } = await render(painted("b"), { host, outputDir: folder() });
    assert.deepEqual([status, count], ["success", 2]);
  });
});
