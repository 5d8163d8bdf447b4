import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { render, validateGraph } from "latentkit";
import { type CheckpointHost, createCheckpointHost } from "latentkit/models";
import { root } from "../../../../helpers/folders.js";
import { node } from "../../../../helpers/graph/graph-nodes.js";
import { goldenModelFolder } from "../../../../helpers/models/golden.js";
import { unpackFlux } from "../../../../helpers/models/golden-flux.js";
import { unpackFolders } from "../../../../helpers/models/golden-graphs.js";

type Node = ReturnType<typeof node>;
type Nodes = Record<string, Node>;

const checkpoint = (name: string) => node("CheckpointLoaderSimple", { ckpt_name: `${name}.safetensors` });
const unet = (name: string) => node("UNETLoader", { unet_name: `${name}.safetensors`, weight_dtype: "default" });
const vae = (name: string) => node("VAELoader", { vae_name: `${name}.safetensors` });
const clip = (name: string, type: string) => node("CLIPLoader", { clip_name: `${name}.safetensors`, type });
const clips = (first: string, second: string, type: string) =>
  node("DualCLIPLoader", { clip_name1: `${first}.safetensors`, clip_name2: `${second}.safetensors`, type });

const MODELS = {
  sd1: checkpoint("sd1_fp8"),
  sdxl: checkpoint("sdxl"),
  sd3: checkpoint("sd3"),
  flux: unet("flux_dev"),
  flux2: unet("flux2_klein"),
  chroma: unet("chroma"),
  zImage: unet("z_image_tiny"),
  qwenImage: unet("qwen_image_tiny"),
};
const CLIPS = {
  sd1: checkpoint("sd1_fp8"),
  sdxl: clips("clip_l", "clip_g", "sdxl"),
  sd3: clips("clip_l", "t5_sd3", "sd3"),
  sd3WithoutT5: clips("clip_l", "clip_g", "sd3"),
  flux: clips("clip_l", "t5xxl_fp16", "flux"),
  fluxCheckpoint: checkpoint("flux_schnell_fp8"),
  flux2: clip("qwen3_klein", "flux2"),
  chroma: clip("t5xxl_fp16", "chroma"),
  zImage: clip("qwen_3_tiny", "lumina2"),
  qwenImage: clip("qwen_2.5_vl_tiny", "qwen_image"),
};
const VAES = { sd1: checkpoint("sd1_fp8"), ae: vae("ae"), wan: vae("qwen_image_vae_tiny"), flux2: vae("flux2_vae") };

interface Parts {
  readonly model: keyof typeof MODELS;
  readonly clip: keyof typeof CLIPS;
  readonly vae: keyof typeof VAES;
}

const SETTINGS = { seed: 1, steps: 1, cfg: 1, sampler_name: "euler", scheduler: "simple", denoise: 1 };
const isWhole = ({ class_type }: Node): boolean => class_type === "CheckpointLoaderSimple";

/** A graph from three parts to a picture; `more` adds nodes. */
function graphOf(parts: Parts, positive = "text", more: Nodes = {}): Nodes {
  const [ownClip, ownVae] = [CLIPS[parts.clip], VAES[parts.vae]];
  const empty = parts.model === "flux2" ? "EmptyFlux2LatentImage" : "EmptyLatentImage";
  return {
    model: MODELS[parts.model],
    clip: ownClip,
    vae: ownVae,
    text: node("CLIPTextEncode", { clip: ["clip", isWhole(ownClip) ? 1 : 0], text: "dogs" }),
    latent: node(empty, { width: 64, height: 64, batch_size: 1 }),
    sampler: node("KSampler", {
      ...SETTINGS,
      model: ["model", 0],
      positive: [positive, 0],
      negative: ["text", 0],
      latent_image: ["latent", 0],
    }),
    decoder: node("VAEDecode", { samples: ["sampler", 0], vae: ["vae", isWhole(ownVae) ? 2 : 0] }),
    ...more,
  };
}

describe("parts of model files that meet in a graph", () => {
  let folder: string;
  let host: CheckpointHost;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "latentkit-misfits-"));
    goldenModelFolder(folder);
    unpackFolders(join(root, "test/golden/models-z-qwen"), ["diffusion_models", "text_encoders", "vae"], folder);
    unpackFlux(folder);
    host = createCheckpointHost({ models: folder });
  });
  after(async () => {
    await host.close();
    rmSync(folder, { recursive: true });
  });

  const targets = ["decoder"];
  const refused = (graph: Nodes): string[] =>
    Object.values(validateGraph(graph, { host, targets }).nodeErrors).flatMap(({ errors }) =>
      errors.map(({ sentence }) => sentence),
    );
  /** Renders without looking at what meets. Returns the error's sentence. */
  const failureOf = async (graph: Nodes): Promise<string | undefined> => {
    const blind = { ...host, misfit: undefined };
    const { status, error } = await render(graph, { host: blind, targets, output: "memory" }).catch((error: Error) => ({
      status: "error",
      error,
    }));
    return status === "success" ? undefined : error!.message;
  };
  const assertRefused = async (graph: Nodes, sentence: string) => {
    assert.deepEqual(refused(graph), [sentence]);
    // the run says the same of what it received
    const start = sentence.slice(0, sentence.indexOf(", received")).replace(/, input "\w+":/, ",");
    const message = await failureOf(graph);
    assert.ok(message?.startsWith(start), `${message} begins with ${start}`);
  };

  const own: readonly Parts[] = [
    { model: "sd1", clip: "sd1", vae: "sd1" },
    { model: "sdxl", clip: "sdxl", vae: "sd1" },
    { model: "flux", clip: "flux", vae: "ae" },
    { model: "flux", clip: "fluxCheckpoint", vae: "ae" },
    { model: "flux", clip: "chroma", vae: "wan" },
    { model: "chroma", clip: "flux", vae: "ae" },
    { model: "chroma", clip: "chroma", vae: "ae" },
    { model: "flux2", clip: "flux2", vae: "flux2" },
    { model: "zImage", clip: "zImage", vae: "ae" },
    { model: "qwenImage", clip: "qwenImage", vae: "wan" },
    { model: "qwenImage", clip: "qwenImage", vae: "ae" },
  ];
  for (const parts of own)
    it(`pass and run: ${parts.model}, clip of ${parts.clip}, VAE ${parts.vae}`, async () => {
      assert.deepEqual(refused(graphOf(parts)), []);
      assert.equal(await failureOf(graphOf(parts)), undefined);
    });

  const conditioning = (what: string, width: number, received: number | string, from: string) =>
    `Node sampler (KSampler), input "positive": ${what}: expected a conditioning [n, tokens, ${width}], as its own text encoder makes it, received [n, tokens, ${received}] from ${from}.`;
  const pooled = (width: number, received: number, from: string) =>
    `Node sampler (KSampler), input "positive": conditioning: expected pooled_output [n, ${width}], as the model's text encoders make it, received [n, ${received}] from ${from}.`;
  const latent = (label: string, channels: number, received: number, from: string) =>
    `Node decoder (VAEDecode), input "samples": VAE of ${label}: expected a latent [B, ${channels}, h, w], received [B, ${received}, h, w] from ${from}.`;
  const flux = "Flux transformer of flux_dev.safetensors";
  const wrong: readonly (readonly [Parts, string])[] = [
    [
      { model: "flux", clip: "sdxl", vae: "ae" },
      conditioning(flux, 48, 192, "clip_l.safetensors and clip_g.safetensors"),
    ],
    [
      { model: "sd1", clip: "sdxl", vae: "sd1" },
      conditioning("UNet of sd1_fp8.safetensors", 64, 192, "clip_l.safetensors and clip_g.safetensors"),
    ],
    [
      { model: "sdxl", clip: "sd1", vae: "sd1" },
      conditioning("UNet of sdxl.safetensors", 192, 64, "sd1_fp8.safetensors"),
    ],
    [
      { model: "flux2", clip: "zImage", vae: "flux2" },
      conditioning("Flux.2 transformer of flux2_klein.safetensors", 96, 32, "qwen_3_tiny.safetensors"),
    ],
    [
      { model: "zImage", clip: "flux2", vae: "ae" },
      conditioning("Z-Image transformer of z_image_tiny.safetensors", 32, 96, "qwen3_klein.safetensors"),
    ],
    [
      { model: "flux", clip: "sd3WithoutT5", vae: "ae" },
      conditioning(flux, 48, "64 or 192", "clip_l.safetensors and clip_g.safetensors"),
    ],
    [
      { model: "sdxl", clip: "sd3WithoutT5", vae: "sd1" },
      pooled(128, 192, "clip_l.safetensors and clip_g.safetensors"),
    ],
    [{ model: "sd3", clip: "flux", vae: "ae" }, pooled(192, 64, "clip_l.safetensors and t5xxl_fp16.safetensors")],
    [{ model: "flux", clip: "flux", vae: "sd1" }, latent("sd1_fp8.safetensors", 4, 16, flux)],
    [{ model: "flux", clip: "flux", vae: "flux2" }, latent("flux2_vae.safetensors", 128, 16, flux)],
    [{ model: "sd1", clip: "sd1", vae: "ae" }, latent("ae.safetensors", 16, 4, "UNet of sd1_fp8.safetensors")],
  ];
  for (const [parts, sentence] of wrong)
    it(`are refused as in a run: ${parts.model}, clip of ${parts.clip}, VAE ${parts.vae}`, () =>
      assertRefused(graphOf(parts), sentence));

  it("are refused if a checkpoint lacks the VAE, as in a run", async () => {
    copyFileSync(join(folder, "diffusion_models/flux_dev.safetensors"), join(folder, "checkpoints/bare.safetensors"));
    const parts: Parts = { model: "flux", clip: "flux", vae: "ae" };
    const lack = 'Model "bare.safetensors" contains no VAE: load one with VAELoader.';
    const decoder = node("VAEDecode", { samples: ["sampler", 0], vae: ["model", 2] });
    const bare = { model: checkpoint("bare"), decoder };
    assert.deepEqual(refused(graphOf(parts, "text", bare)), [`Node decoder (VAEDecode), input "vae": ${lack}`]);
    assert.equal(await failureOf(graphOf(parts, "text", bare)), `Node decoder (VAEDecode): ${lack}`);
    const encoded = {
      model: checkpoint("bare"),
      picture: node("EmptyImage", { width: 64, height: 64, batch_size: 1, color: 0 }),
      latent: node("VAEEncode", { pixels: ["picture", 0], vae: ["model", 2] }),
    };
    assert.deepEqual(refused(graphOf(parts, "text", encoded)), [`Node latent (VAEEncode), input "vae": ${lack}`]);
    assert.deepEqual(refused(graphOf(parts, "text", { model: checkpoint("bare") })), []);
  });

  it("are not refused where the texts decide, or for files that are refused themselves", async () => {
    // without T5, which of CLIP's encoders read a text depends on its node
    const partial = graphOf({ model: "sd3", clip: "sd3", vae: "ae" }, "text", { clip: clip("clip_l", "sd3") });
    assert.doesNotMatch(refused(partial).join(), /tokens/);
    const ofClip = graphOf({ model: "sd1", clip: "sd3WithoutT5", vae: "sd1" });
    assert.deepEqual(refused(ofClip), []);
    const odd = graphOf({ model: "flux", clip: "flux", vae: "ae" }, "text", {
      clip: clip("t5xxl_fp16", "stable_diffusion"),
    });
    assert.match(
      refused(odd).join(),
      /^Node clip \(CLIPLoader\), input "clip_name": Model .* received type "stable_diffusion"\.$/,
    );
  });

  describe("with references", () => {
    const placed = (parts: Parts, reference_latents_method: string): Nodes =>
      graphOf(parts, "placed", {
        placed: node("FluxKontextMultiReferenceLatentMethod", {
          conditioning: ["reference", 0],
          reference_latents_method,
        }),
        reference: node("ReferenceLatent", { conditioning: ["text", 0], latent: ["encoded", 0] }),
        encoded: node("VAEEncode", { pixels: ["picture", 0], vae: ["vae", 0] }),
        picture: node("EmptyImage", { width: 64, height: 64, batch_size: 1, color: 0 }),
      });
    const flux2: Parts = { model: "flux2", clip: "flux2", vae: "flux2" };
    const flux1: Parts = { model: "flux", clip: "flux", vae: "ae" };
    const zImage: Parts = { model: "zImage", clip: "zImage", vae: "ae" };

    it("are refused at places that the model has not learned, as in a run", async () => {
      const start = 'Node sampler (KSampler), input "positive": conditioning: expected reference_latents_method';
      await assertRefused(placed(flux2, "offset"), `${start} index or uxo, received "offset".`);
      await assertRefused(
        placed(flux2, "index_timestep_zero"),
        `${start} index or uxo, received "index_timestep_zero".`,
      );
      await assertRefused(
        placed(flux1, "index_timestep_zero"),
        `${start} offset or index or uxo, received "index_timestep_zero".`,
      );
    });

    it("pass and run at others, and in models that ignore them", async () => {
      for (const graph of [
        placed(flux2, "index"),
        placed(flux2, "uxo/uno"),
        placed(flux1, "offset"),
        placed(zImage, "offset"),
      ]) {
        assert.deepEqual(refused(graph), []);
        assert.equal(await failureOf(graph), undefined);
      }
    });
  });
});
