import assert from "node:assert/strict";
import {
  createPreviewHost,
  createRegistry,
  defineNode,
  type Host,
  LatentkitError,
  registry,
  validateGraph,
} from "latentkit";
import { conditioning } from "#src/nodes/inputs.js";
import { node } from "../../../helpers/graph/graph-nodes.js";

/** Parts of files whose names begin with another letter do not fit, and models of b do not know "offset". */
const host: Host = {
  ...createPreviewHost(),
  checkpoints: () => ["a.safetensors", "b.safetensors"],
  files: (kind) => (kind === "loras" ? ["ink.safetensors"] : ["a1.safetensors", "b1.safetensors", "b2.safetensors"]),
  misfit: (taker, given) => {
    const [own] = taker.files[0]!.name;
    if (given === undefined) return undefined;
    if (given.type === "reference_latents_method")
      return own === "b" && given.places === "offset" ? new LatentkitError("value.invalid", "no offset.") : undefined;
    const names = given.files.map(({ name }) => name);
    const fits = names.every(([letter]) => letter === own);
    return fits ? undefined : new LatentkitError("value.invalid", `${taker.type} of ${own}: ${names.join(" and ")}.`);
  },
};

const SETTINGS = { seed: 1, steps: 2, cfg: 2, sampler_name: "euler", scheduler: "simple", denoise: 1 };
const SIDES = { model: ["a", 0], positive: ["text a", 0], negative: ["text a", 0], latent_image: ["empty", 0] };
const sampler = (more: object = {}) => node("KSampler", { ...SIDES, ...SETTINGS, ...more });
const decoder = (more: object = {}) => node("VAEDecode", { samples: ["sampler", 0], vae: ["a", 2], ...more });
const encoder = (vae: string) => node("VAEEncode", { pixels: ["picture", 0], vae: [vae, 2] });

/** Nodes of two families; the picture is made by those of a. */
const NODES = {
  a: node("CheckpointLoaderSimple", { ckpt_name: "a.safetensors" }),
  b: node("CheckpointLoaderSimple", { ckpt_name: "b.safetensors" }),
  "text a": node("CLIPTextEncode", { clip: ["a", 1], text: "dogs" }),
  "text b": node("CLIPTextEncode", { clip: ["b", 1], text: "dogs" }),
  empty: node("EmptyLatentImage", { width: 64, height: 64, batch_size: 1 }),
  picture: node("EmptyImage", { width: 64, height: 64, batch_size: 1, color: 0 }),
  "latent a": encoder("a"),
  "latent b": encoder("b"),
  sampler: sampler(),
  decoder: decoder(),
};

type Nodes = Record<string, ReturnType<typeof node>>;

const verdictOn = (more: Nodes, { targets = ["decoder"], nodes = registry as never } = {}) =>
  validateGraph({ ...NODES, ...more }, { host, targets, registry: nodes });

/** Inputs that are refused, by node. */
const refused = (more: Nodes, options?: Parameters<typeof verdictOn>[1]): string[] =>
  Object.entries(verdictOn(more, options).nodeErrors).flatMap(([id, { errors }]) =>
    errors.map(({ input }) => `${id}: ${input}`),
  );

describe("linkRefusals", () => {
  it("pass parts of one family", () => {
    assert.deepEqual(refused({}), []);
    assert.deepEqual(refused({ sampler: sampler({ latent_image: ["latent a", 0] }) }), []);
  });

  it("refuse a conditioning of another family, in the error of the host at its node", () => {
    const { nodeErrors } = verdictOn({ sampler: sampler({ positive: ["text b", 0] }) });
    const [error, ...others] = nodeErrors.sampler!.errors;
    assert.deepEqual(others, []);
    assert.equal(error!.sentence, 'Node sampler (KSampler), input "positive": MODEL of a: b.safetensors.');
    assert.equal(error!.code, "value.invalid");
  });

  it("refuse a negative conditioning only where guidance counts it", () => {
    const negative = ["text b", 0];
    assert.deepEqual(refused({ sampler: sampler({ negative }) }), ["sampler: negative"]);
    assert.deepEqual(refused({ sampler: sampler({ negative, cfg: 1 }) }), []);
    const cfg = node("PrimitiveNode", { value: 1 });
    assert.deepEqual(refused({ cfg, sampler: sampler({ negative, cfg: ["cfg", 0] }) }), []);
  });

  it("follow conditionings, clips and models through the nodes that change them", () => {
    const lora = { lora_name: "ink.safetensors", strength_model: 1, strength_clip: 1 };
    const chain = {
      lora: node("LoraLoader", { model: ["b", 0], clip: ["b", 1], ...lora }),
      last: node("CLIPSetLastLayer", { clip: ["lora", 1], stop_at_clip_layer: -2 }),
      text: node("CLIPTextEncode", { clip: ["last", 0], text: "dogs" }),
      guided: node("FluxGuidance", { conditioning: ["text", 0], guidance: 3 }),
      zeros: node("ConditioningZeroOut", { conditioning: ["guided", 0] }),
    };
    assert.deepEqual(refused({ ...chain, sampler: sampler({ positive: ["zeros", 0] }) }), ["sampler: positive"]);
    const ofB = sampler({ model: ["lora", 0], positive: ["zeros", 0], negative: ["text b", 0] });
    assert.deepEqual(refused({ ...chain, sampler: ofB, decoder: decoder({ vae: ["b", 2] }) }), []);
  });

  it("tell several text encoders and their type to the host", () => {
    const clips = (first: string, second: string): Nodes => ({
      clips: node("DualCLIPLoader", { clip_name1: first, clip_name2: second, type: "flux" }),
      text: node("CLIPTextEncode", { clip: ["clips", 0], text: "dogs" }),
      sampler: sampler({ positive: ["text", 0] }),
    });
    const [error] = verdictOn(clips("b1.safetensors", "b2.safetensors")).nodeErrors.sampler!.errors;
    assert.match(error!.sentence, /MODEL of a: b1\.safetensors and b2\.safetensors\./);
  });

  it("refuse latents of another family for a decoder and a sampler", () => {
    assert.deepEqual(refused({ decoder: decoder({ vae: ["b", 2] }) }), ["decoder: samples"]);
    assert.deepEqual(refused({ decoder: decoder({ samples: ["latent b", 0] }) }), ["decoder: samples"]);
    assert.deepEqual(refused({ sampler: sampler({ latent_image: ["latent b", 0] }) }), ["sampler: latent_image"]);
    const wide = node("LatentUpscaleBy", { samples: ["latent b", 0], upscale_method: "bilinear", scale_by: 2 });
    assert.deepEqual(refused({ wide, sampler: sampler({ latent_image: ["wide", 0] }) }), ["sampler: latent_image"]);
  });

  it("pass a picture from one family to another, as pixels", () => {
    const second = {
      pixels: decoder(),
      again: node("VAEEncode", { pixels: ["pixels", 0], vae: ["b", 2] }),
      of: sampler({ model: ["b", 0], positive: ["text b", 0], negative: ["text b", 0], latent_image: ["again", 0] }),
      decoder: decoder({ samples: ["of", 0], vae: ["b", 2] }),
    };
    assert.deepEqual(refused(second), []);
  });

  it("follow each side of a node with two", () => {
    const sides = { positive: ["text a", 0], negative: ["text b", 0] };
    const mask = node("SolidMask", { value: 1, width: 64, height: 64 });
    const both = node("InpaintModelConditioning", {
      ...sides,
      vae: ["a", 2],
      pixels: ["picture", 0],
      mask: ["mask", 0],
      noise_mask: true,
    });
    const links = { positive: ["both", 0], negative: ["both", 1], latent_image: ["both", 2] };
    assert.deepEqual(refused({ mask, both, sampler: sampler(links) }), ["sampler: negative"]);
  });

  it("refuse several conditionings if none of them fits", () => {
    const combined = (first: string, second: string): Nodes => ({
      both: node("ConditioningCombine", { conditioning_1: [first, 0], conditioning_2: [second, 0] }),
      sampler: sampler({ positive: ["both", 0] }),
    });
    assert.deepEqual(refused(combined("text b", "text b")), ["sampler: positive"]);
    assert.deepEqual(refused(combined("text b", "text a")), []);
  });

  it("refuse what a guider takes where a sampler uses it", () => {
    const custom = (guider: Nodes[string], sigmas: Nodes = {}): Nodes => ({
      guider,
      sigmas: node("BasicScheduler", { model: ["a", 0], scheduler: "simple", steps: 4, denoise: 1 }),
      noise: node("RandomNoise", { noise_seed: 1 }),
      euler: node("KSamplerSelect", { sampler_name: "euler" }),
      sampler: node("SamplerCustomAdvanced", {
        noise: ["noise", 0],
        guider: ["guider", 0],
        sampler: ["euler", 0],
        sigmas: ["sigmas", 0],
        latent_image: ["latent b", 0],
      }),
      ...sigmas,
    });
    const basic = node("BasicGuider", { model: ["a", 0], conditioning: ["text b", 0] });
    assert.deepEqual(refused(custom(basic)), ["sampler: latent_image", "guider: conditioning"]);
    const split = {
      all: node("BasicScheduler", { model: ["a", 0], scheduler: "simple", steps: 4, denoise: 1 }),
      sigmas: node("SplitSigmas", { sigmas: ["all", 0], step: 4 }),
    };
    assert.deepEqual(refused(custom(basic, split)), []);
    const cfg = node("CFGGuider", { model: ["b", 0], positive: ["text b", 0], negative: ["text a", 0], cfg: 1 });
    assert.deepEqual(refused(custom(cfg)), ["decoder: samples"]);
  });

  it("pass what is not used in any step", () => {
    const wrong = { positive: ["text b", 0], latent_image: ["latent b", 0] };
    assert.deepEqual(refused({ sampler: sampler({ ...wrong, denoise: 0 }), decoder: decoder({ vae: ["b", 2] }) }), []);
    const advanced = (start_at_step: number, end_at_step: number) => {
      const { seed, denoise, ...others } = SETTINGS;
      const own = { add_noise: "enable", noise_seed: 1, return_with_leftover_noise: "disable" };
      return node("KSamplerAdvanced", { ...SIDES, ...others, ...own, ...wrong, start_at_step, end_at_step });
    };
    assert.deepEqual(refused({ sampler: advanced(1, 1000) }), ["sampler: latent_image", "sampler: positive"]);
    for (const [start, end] of [
      [2, 1000],
      [1, 1],
    ] as const)
      assert.deepEqual(refused({ sampler: advanced(start, end) }), []);
  });

  it("pass conditionings that may never count, and latents that may be zeros", () => {
    const half = node("ConditioningSetTimestepRange", { conditioning: ["text b", 0], start: 0, end: 0.5 });
    assert.deepEqual(refused({ half, sampler: sampler({ positive: ["half", 0] }) }), []);
    const zeros = node("LatentMultiply", { samples: ["latent b", 0], multiplier: 0 });
    assert.deepEqual(refused({ zeros, sampler: sampler({ latent_image: ["zeros", 0] }) }), []);
  });

  it("pass what comes from nodes of other packages, also under a name of ours", () => {
    const passing = (key: string) =>
      defineNode({
        key,
        inputs: { conditioning: conditioning() },
        outputs: { CONDITIONING: "CONDITIONING" },
        run: ({ conditioning }) => ({ CONDITIONING: conditioning }),
      });
    for (const key of ["Other", "ConditioningZeroOut"]) {
      const other = node(key, { conditioning: ["text b", 0] });
      const nodes = createRegistry([passing(key)], registry) as never;
      assert.deepEqual(refused({ other, sampler: sampler({ positive: ["other", 0] }) }, { nodes }), []);
    }
    assert.deepEqual(refused({ sampler: sampler({ positive: ["text b", 0] }) }, { nodes: registry as never }), [
      "sampler: positive",
    ]);
  });

  it("pass a file whose name comes through a link", () => {
    const name = node("PrimitiveNode", { value: "b.safetensors" });
    const b = node("CheckpointLoaderSimple", { ckpt_name: ["name", 0] });
    assert.deepEqual(refused({ name, b, sampler: sampler({ positive: ["text b", 0] }) }), []);
  });

  it("pass links that are too long to follow", () => {
    const chain = (length: number): Nodes => {
      const link = (i: number) =>
        node("FluxGuidance", { conditioning: [i === 0 ? "text b" : `${i - 1}`, 0], guidance: 3 });
      const nodes = Array.from({ length }, (_, i): [string, Nodes[string]] => [`${i}`, link(i)]);
      return { ...Object.fromEntries(nodes), sampler: sampler({ positive: [`${length - 1}`, 0] }) };
    };
    assert.deepEqual(refused(chain(60)), ["sampler: positive"]);
    assert.deepEqual(refused(chain(70)), []);
  });

  it("warn of a sampler behind a lazy input, which may never run", () => {
    const lazy = {
      sampler: sampler({ positive: ["text b", 0] }),
      "9": node("ext if", { any: true, if: ["picture", 0], else: ["decoder", 0] }),
    };
    const { ok, warnings } = verdictOn(lazy, { targets: ["9"] });
    assert.equal(ok, true);
    assert.match(warnings.map(({ message }) => message).join(), /MODEL of a: b\.safetensors/);
  });

  it("leave nodes alone that no output needs, and hosts that say nothing", () => {
    const wrong = { sampler: sampler({ positive: ["text b", 0] }) };
    assert.deepEqual(refused(wrong, { targets: ["picture"] }), []);
    const { nodeErrors } = validateGraph(
      { ...NODES, ...wrong },
      { host: { ...host, misfit: undefined }, targets: ["decoder"] },
    );
    assert.deepEqual(nodeErrors, {});
  });

  describe("of places of references", () => {
    const PLACES = "FluxKontextMultiReferenceLatentMethod";
    const placed = (reference_latents_method: unknown, from = "text b") =>
      node(PLACES, { conditioning: [from, 0], reference_latents_method });
    const ofB = (positive: string) => ({
      sampler: sampler({ model: ["b", 0], positive: [positive, 0], negative: ["text b", 0] }),
      decoder: decoder({ vae: ["b", 2] }),
    });

    it("refuse what the model has not learned", () => {
      const reference = node("ReferenceLatent", { conditioning: ["placed", 0], latent: ["latent b", 0] });
      assert.deepEqual(refused({ placed: placed("offset"), reference, ...ofB("reference") }), ["sampler: positive"]);
      assert.deepEqual(refused({ placed: placed("index"), reference, ...ofB("reference") }), []);
      const ofA = sampler({ positive: ["placed", 0] });
      assert.deepEqual(refused({ placed: placed("offset", "text a"), sampler: ofA }), []);
    });

    it("count the last node that sets them, if its value is known", () => {
      const first = placed("offset");
      assert.deepEqual(refused({ first, second: placed("index", "first"), ...ofB("second") }), []);
      const name = node("PrimitiveNode", { value: "index" });
      assert.deepEqual(refused({ name, first, second: placed(["name", 0], "first"), ...ofB("second") }), []);
    });
  });
});
