import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createCache, type Host, render, Tensor } from "latentkit";
import { type CheckpointHost, createCheckpointHost } from "latentkit/models";
import type { Receipt } from "#src/render/receipt/receipt.js";
import { verifyImage } from "#src/render/verify/verify.js";
import { sha256, temporaryFolder } from "../../../helpers/folders.js";
import { node } from "../../../helpers/graph/graph-nodes.js";
import { receiptOf } from "../../../helpers/graph/receipt-graphs.js";
import { modelsFolder, ownCacheFolder } from "../../../helpers/models/models-folder.js";
import { runHere } from "../../../helpers/process/run-here.js";

const CHECKPOINT = "sd1_fp8.safetensors";

/** Text to image on a tiny checkpoint, with an embedding in the prompt; a second checkpoint's loader leads nowhere. */
const painted = () => ({
  "1": node("CheckpointLoaderSimple", { ckpt_name: CHECKPOINT }),
  "2": node("CLIPTextEncode", { text: "a lake (embedding:tiny-a:1.1)", clip: ["1", 1] }),
  "3": node("CLIPTextEncode", { text: "", clip: ["1", 1] }),
  "4": node("EmptyLatentImage", { width: 64, height: 64, batch_size: 1 }),
  "5": node("KSampler", {
    model: ["1", 0],
    positive: ["2", 0],
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
  "7": node("SaveImage", { images: ["6", 0], filename_prefix: "painted" }),
});

describe("pictures that models painted", () => {
  const folder = temporaryFolder();
  ownCacheFolder(folder);
  const hosts: CheckpointHost[] = [];
  const hostOf = (models: string, threads = 1) => {
    const host = createCheckpointHost({ models, threads });
    hosts.push(host);
    return host;
  };
  afterEach(async () => {
    for (const host of hosts.splice(0)) await host.close();
  });
  const paint = async (host: Host, options: object = {}) => {
    const result = await render(painted(), { host, outputDir: join(folder(), "out"), ...options });
    assert.equal(result.status, "success", result.error?.message);
    return result.files.at(-1)!.path;
  };
  const models = () => modelsFolder(folder(), "checkpoints/sd1_fp8", "loras/sd1_diffusers", "embeddings/tiny-a");
  /** A host whose pictures are lighter by that many 255ths. */
  const lighter = (host: Host, by: number): Host => ({
    ...host,
    loadCheckpoint: async (name, signal) => {
      const checkpoint = await host.loadCheckpoint(name, signal);
      const decode = async (latent: Tensor) => {
        const { data, shape } = await checkpoint.vae.decode(latent);
        return Tensor.from(
          data.map((value) => (value < 0.5 ? value + by / 255 : value)),
          shape,
        );
      };
      return { ...checkpoint, vae: { encode: (image) => checkpoint.vae.encode(image), decode } };
    },
  });

  it("have receipts that name the model files that were used, and how", async () => {
    const own = models();
    const host = hostOf(own);
    const { host: named, models: hashes, runtime } = receiptOf(await paint(host)) as unknown as Receipt;
    const hashOf = (name: string) => `sha256:${sha256(readFileSync(join(own, name)))}`;
    const [checkpoint, embedding] = [`checkpoints/${CHECKPOINT}`, "embeddings/tiny-a.safetensors"];
    assert.deepEqual(named, { name: "checkpoint", preview: false });
    assert.deepEqual(hashes, { [checkpoint]: hashOf(checkpoint), [embedding]: hashOf(embedding) });
    const { version, ...settings } = runtime!;
    assert.match(version, /^\d+\.\d+/);
    // few calls stream, but weights of 8 bits
    const plans = {
      [`UNet of ${CHECKPOINT}`]: "fold",
      [`VAE of ${CHECKPOINT}`]: "stream",
      [`text encoder l of ${CHECKPOINT}`]: "stream",
    };
    assert.deepEqual(settings, {
      name: "onnxruntime-node",
      provider: "cpu",
      form: "tiles",
      threads: 1,
      plans,
    });
  });

  it("have the same receipts with a cache, and hide what is hidden", async () => {
    const host = hostOf(models());
    const cache = createCache({ size: 2 ** 28 });
    const first = receiptOf(await paint(host, { cache }));
    assert.deepEqual(receiptOf(await paint(host, { cache })), first);
    const hidden = receiptOf(await paint(host, { cache, redact: ["ckpt_name", "2.text"] })) as unknown as Receipt;
    assert.deepEqual([hidden.models, hidden.runtime], [{}, undefined]);
  });

  it("are verified with equal or close pixels, and the verdict says which", async () => {
    const host = hostOf(models());
    const file = readFileSync(await paint(host));
    const verdict = async (other: Host) => {
      const { status, pixels, differences, remarks } = await verifyImage(file, { host: other });
      return [status, pixels, ...[...differences, ...remarks].map(({ message }) => message)];
    };
    assert.deepEqual(await verdict(host), ["verified", "equal"]);
    assert.deepEqual(await verdict(lighter(host, 4)), [
      "verified",
      "close",
      "Rendered again, picture 0 of node 7 has other pixels within the tolerance, off by up to 4 of 255; 4 is allowed.",
    ]);
    assert.deepEqual(await verdict(lighter(host, 5)), [
      "different",
      undefined,
      "Rendered again, picture 0 of node 7 has other pixels, off by up to 5 of 255; 4 is allowed.",
    ]);
    const [, , remark, ...more] = await verdict({
      ...lighter(host, 2),
      provenance: async (named, signal) => {
        const { models: hashes, runtime } = await host.provenance!(named, signal);
        return { models: hashes, runtime: { ...runtime!, threads: 8 } };
      },
    });
    assert.match(remark!, /up to 2 of 255/);
    assert.deepEqual(more, ["The number of threads was 1 when the picture was made; now it is 8."]);
  });

  it("are different with another or a missing model, in one sentence for each", async () => {
    const own = models();
    const path = await paint(hostOf(own));
    const message = async () => {
      const { status, differences } = await verifyImage(readFileSync(path), { host: hostOf(own) });
      assert.equal(status, "different");
      return differences.map(({ what, message }) => `${what}: ${message}`);
    };
    const embedding = join(own, "embeddings/tiny-a.safetensors");
    const bytes = readFileSync(embedding);
    const before = sha256(bytes).slice(0, 10);
    bytes[bytes.length - 1]! ^= 1;
    writeFileSync(embedding, bytes);
    assert.deepEqual(await message(), [
      `model: The model file "embeddings/tiny-a.safetensors" has changed: AutoV2 ${sha256(bytes).slice(0, 10)} now, ${before} when the picture was made.`,
    ]);
    rmSync(embedding);
    assert.deepEqual(await message(), [
      `model: The model file "embeddings/tiny-a.safetensors" (AutoV2 ${before}) is missing, or the graph in the file does not name it.`,
    ]);
  });

  it("cannot be verified without models, which the sentence asks for @long", async () => {
    const own = models();
    const path = await paint(hostOf(own));
    const without = await runHere("verify", path);
    assert.equal(without.code, 2);
    assert.match(without.err, /cannot be verified: models painted it; name their folder with --models/);
    const { code, out } = await runHere("verify", path, "--models", own, "--json");
    const { status, pixels } = JSON.parse(out) as { status: string; pixels: string };
    assert.deepEqual([code, status], [0, "verified"]);
    assert.match(pixels, /^(?:equal|close)$/);
  });
});
