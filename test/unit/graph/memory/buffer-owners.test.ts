import assert from "node:assert/strict";
import { createCache, createPreviewHost, createRegistry, defineNode, latent, registry, render } from "latentkit";
import type { RenderOptions } from "#src/render/render.js";
import { clearPool, pooledBytes, returnMemory, takeMemory } from "#src/tensor/memory-pool.js";
import { hashesIn, temporaryFolder } from "../../../helpers/folders.js";
import { seededInts } from "../../../helpers/seeded.js";

/** A latent of 256 x 256 pixels and its picture, in bytes. */
const LATENT = 4 * 32 * 32 * 4;
const PICTURE = 256 * 256 * 3 * 4;
/** Bytes of a prompt's tokens of SD 1.x, of a mask of 256 x 231 and of a latent of 1056 x 896 pixels. */
const EQUAL = 77 * 768 * 4;
/** One picture as the encoder's bytes preserve it, whatever the run is. */
const OWN = PICTURE / 4;

type Link = readonly [string, number];
type Nodes = Record<string, { class_type: string; inputs: Record<string, unknown> }>;

const LOADER = {
  ckpt_name: "preview-sd15.safetensors",
  positive: "",
  negative: "",
  batch_size: 1,
  empty_latent_width: 256,
  empty_latent_height: 256,
};
const noisy = (seed: number) => ({
  class_type: "ext latentNoisy",
  inputs: {
    sampler_name: "euler",
    scheduler: "karras",
    steps: 20,
    start_at_step: 0,
    end_at_step: 20,
    source: "CPU",
    seed,
    pipe: ["pipe", 0],
  },
});
const inject = (a: Link, b: Link, more: object) => ({
  class_type: "ext injectNoiseToLatent",
  inputs: {
    strength: 0.4,
    normalize: false,
    average: false,
    mix_randn_amount: 0,
    seed: 1,
    latent: a,
    noise: b,
    pipe_to_noise: ["pipe", 0],
    ...more,
  },
});
const saved = (samples: Link, id: string): Nodes => ({
  [`decode${id}`]: { class_type: "VAEDecode", inputs: { samples, vae: ["pipe", 2] } },
  [`save${id}`]: { class_type: "SaveImage", inputs: { images: [`decode${id}`, 0], filename_prefix: `p${id}` } },
});
const pipe: Nodes = { pipe: { class_type: "ext pipeLoader", inputs: LOADER } };

const simple: Nodes = { ...pipe, a: noisy(1), b: noisy(2), c: inject(["a", 1], ["b", 1], {}), ...saved(["c", 0], "") };

/** Latents made of each other, some read several times, some saved. */
function randomGraph(random: () => number): { graph: Nodes; seeds: string[] } {
  const empty = { class_type: "EmptyLatentImage", inputs: { width: 256, height: 256, batch_size: 1 } };
  const graph: Nodes = { ...pipe, empty };
  const latents: Link[] = [["empty", 0]];
  const seeds: string[] = [];
  const any = () => latents[Math.floor(random() * latents.length)]!;
  for (let k = 0; k < 8; k++) {
    const id = `n${k}`;
    if (random() < 0.45) {
      graph[id] = noisy(k);
      seeds.push(`${id}.seed`);
      latents.push([id, 1]);
    } else if (random() < 0.3) {
      // another node's tensor under its own name
      graph[id] = { class_type: "ext if", inputs: { any: 1, if: any(), else: any() } };
      seeds.push(`${id}.any`);
      latents.push([id, 0]);
    } else {
      const mask = random() < 0.4 ? { mask: ["mask", 0] } : {};
      const mix = random() < 0.3 ? { mix_randn_amount: 0.25 } : {};
      graph[id] = inject(any(), any(), { average: random() < 0.5, ...mask, ...mix });
      latents.push([id, 0]);
    }
  }
  graph.mask = { class_type: "SolidMask", inputs: { value: 0.5, width: 256, height: 256 } };
  for (const id of ["x", "y"]) Object.assign(graph, saved(any(), id));
  return { graph, seeds };
}

const node = (class_type: string, inputs: Record<string, unknown>) => ({ class_type, inputs });

/** Prompts of averaged tokens, the first within a mask; a guider alone holds them and the mask from then on. */
const guiderNodes = (id: string, model: Link, strength: number, value: number): Nodes => ({
  [`near${id}`]: averaged(strength),
  [`far${id}`]: averaged(1 - strength),
  [`mask${id}`]: node("SolidMask", { value, width: 256, height: 231 }),
  [`masked${id}`]: node("ConditioningSetMask", {
    conditioning: [`near${id}`, 0],
    mask: [`mask${id}`, 0],
    strength: 1,
    set_cond_area: "default",
  }),
  [`both${id}`]: node("ConditioningCombine", { conditioning_1: [`masked${id}`, 0], conditioning_2: ["red", 0] }),
  [`guider${id}`]: node("CFGGuider", { model, positive: [`both${id}`, 0], negative: [`far${id}`, 0], cfg: 5 }),
});
const averaged = (conditioning_to_strength: number) =>
  node("ConditioningAverage", {
    conditioning_to: ["red", 0],
    conditioning_from: ["blue", 0],
    conditioning_to_strength,
  });
const custom = (id: string, latent_image: Link): Nodes => ({
  [`noise${id}`]: node("RandomNoise", { noise_seed: 3 }),
  [`sampler${id}`]: node("SamplerCustomAdvanced", {
    guider: [`guider${id}`, 0],
    noise: [`noise${id}`, 0],
    sampler: ["euler", 0],
    sigmas: ["sigmas", 0],
    latent_image,
  }),
});

/**
 * Two custom samplings, the second of the first one's latent, with a model of Perp-Neg that alone holds a conditioning.
 * Latents have the size of tokens and masks, so that a sampler would write over those that were released too early.
 */
const guided: Nodes = {
  load: node("CheckpointLoaderSimple", { ckpt_name: "preview-sd15.safetensors" }),
  red: node("CLIPTextEncode", { text: "a red house", clip: ["load", 1] }),
  blue: node("CLIPTextEncode", { text: "a blue lake", clip: ["load", 1] }),
  empty: averaged(0.5),
  perp: node("PerpNeg", { model: ["load", 0], empty_conditioning: ["empty", 0], neg_scale: 1 }),
  euler: node("KSamplerSelect", { sampler_name: "euler" }),
  sigmas: node("BasicScheduler", { model: ["load", 0], scheduler: "karras", steps: 3, denoise: 1 }),
  blank: node("EmptyLatentImage", { width: 1056, height: 896, batch_size: 1 }),
  ...guiderNodes("B", ["perp", 0], 0.9, 0.25),
  ...guiderNodes("A", ["load", 0], 0.2, 0.75),
  ...custom("A", ["blank", 0]),
  ...custom("B", ["samplerA", 0]),
  decode: node("VAEDecode", { samples: ["samplerB", 0], vae: ["load", 2] }),
  save: node("SaveImage", { images: ["decode", 0], filename_prefix: "p" }),
};

/** Whoever still reads memory that waits gets no picture from now on. */
function spoil(bytes: readonly number[]): void {
  for (const size of bytes) {
    const taken: ArrayBuffer[] = [];
    for (let left = pooledBytes() / size; left > 0; left--) taken.push(takeMemory(size));
    for (const memory of taken) {
      new Float32Array(memory).fill(Number.NaN);
      returnMemory(memory);
    }
  }
}

describe("memory of a contained run", () => {
  const folder = temporaryFolder();
  beforeEach(clearPool);
  after(clearPool);

  const run = async (graph: object, options: RenderOptions = {}) => {
    const result = await render(graph, { outputDir: folder(), ...options });
    assert.equal(result.status, "success", result.error?.message);
    return result;
  };

  it("returns to the pool with its last reader", async () => {
    await run(simple);
    // two latents and their sum, of which one may be the memory of another, and the picture
    const once = pooledBytes();
    assert.ok(once >= OWN + PICTURE + 2 * LATENT, `${once}`);
    await run(simple);
    assert.equal(pooledBytes(), once);
  });

  it("returns to the pool with a custom host that declares it", async () => {
    const host = Object.defineProperty({ ...createPreviewHost() }, "retainsNoTensors", { value: true });
    await run(simple, { host });
    assert.ok(pooledBytes() >= OWN + PICTURE + 2 * LATENT, `${pooledBytes()}`);
  });

  const keeper = defineNode({
    key: "keeps",
    inputs: { latent: latent() },
    outputs: { latent: "LATENT" },
    run: (inputs) => inputs,
  });
  const withKeeper = { ...simple, k: { class_type: "keeps", inputs: { latent: ["c", 0] } }, ...saved(["k", 0], "") };
  const base = createPreviewHost();
  for (const [what, graph, options] of [
    ["a node that is not ours", withKeeper, { registry: createRegistry([keeper], registry) }],
    ["a host that is not ours", simple, { host: { ...base } }],
    ["a host made from ours", simple, { host: Object.create(base) }],
    ["a listener", simple, { onEvent: () => undefined }],
  ] as const) {
    it(`does not return to the pool with ${what}`, async () => {
      await run(graph, options);
      assert.equal(pooledBytes(), OWN);
    });
  }

  it("is never that of a result which a node, run or cache still holds @long", async () => {
    const ints = seededInts(11);
    const random = () => ints(1000) / 1000;
    for (let round = 0; round < 12; round++) {
      const { graph, seeds } = randomGraph(random);
      const cache = createCache();
      for (let item = 0; item < 4; item++) {
        const set = Object.fromEntries(seeds.filter(() => random() < 0.5).map((key) => [key, item % 3]));
        const [plain, reused] = [`${folder()}/${round}-${item}-plain`, `${folder()}/${round}-${item}`];
        await run(graph, { set, outputDir: plain, onEvent: () => undefined });
        await run(graph, { set, outputDir: reused, cache, passing: Object.keys(set) });
        assert.deepEqual(hashesIn(reused), hashesIn(plain), `graph ${JSON.stringify(graph)}, ${JSON.stringify(set)}`);
        spoil([LATENT, PICTURE]);
      }
    }
  });

  it("is never that of a tensor which a guider or the guidance of a model alone still holds", async () => {
    const plain = `${folder()}/plain`;
    await run(guided, { outputDir: plain, onEvent: () => undefined });
    const cache = createCache();
    const set = { "noiseA.noise_seed": 3 };
    for (const [name, options] of [
      ["none", {}],
      ["cached", { cache }],
      ["read", { cache }],
      ["passing", { cache, set, passing: Object.keys(set) }],
    ] as const) {
      const outputDir = `${folder()}/${name}`;
      await run(guided, { outputDir, ...options });
      assert.deepEqual(hashesIn(outputDir), hashesIn(plain), name);
      spoil([EQUAL]);
    }
  });

  it("is never shared between concurrent runs", async () => {
    const cache = createCache();
    const seeds = Array.from({ length: 24 }, (_, seed) => seed);
    for (const seed of seeds) await run(simple, { set: { "a.seed": seed }, outputDir: `${folder()}/one/${seed}` });
    await Promise.all(
      seeds.map((seed) =>
        run(simple, { set: { "a.seed": seed }, outputDir: `${folder()}/many/${seed}`, cache, passing: ["a.seed"] }),
      ),
    );
    assert.deepEqual(hashesIn(`${folder()}/many`), hashesIn(`${folder()}/one`));
  });
});
