import assert from "node:assert/strict";
import { createPreviewHost, encodePrompt, invokeNode, Tensor } from "latentkit";
import type { Conditioning, Pipe } from "#src/host/types.js";
import { refuses } from "../../../helpers/errors.js";
import { fakeClip } from "../../../helpers/graph/fake-clip.js";
import { assertClose, assertSameBits } from "../../../helpers/tensor/bits.js";
import { golden } from "../../../helpers/tensor/golden.js";

const host = createPreviewHost();
const SETTINGS = {
  ckpt_name: "preview-sd15.safetensors",
  positive: "a (fox:1.3)",
  negative: "blurry",
  batch_size: 2,
  empty_latent_width: 128,
  empty_latent_height: 72,
};
const load = (inputs: object = {}) => invokeNode("ext pipeLoader", { ...SETTINGS, ...inputs }, { host });

describe("ext pipeLoader", () => {
  it("makes a whole pipe", async () => {
    const { result } = await load();
    const [pipe, model, vae, clip] = result as [Pipe, unknown, unknown, unknown];
    const checkpoint = await host.loadCheckpoint(SETTINGS.ckpt_name);
    assert.deepEqual([model, vae, clip], [checkpoint.model, checkpoint.vae, checkpoint.clip]);
    assert.deepEqual([pipe.model, pipe.vae, pipe.clip], [model, vae, clip]);
    assertSameBits(pipe.samples?.samples, Tensor.zeros([2, 4, 9, 16]));
    assert.deepEqual(pipe.positive, await encodePrompt(checkpoint.clip, SETTINGS.positive));
    assert.deepEqual(pipe.negative, await encodePrompt(checkpoint.clip, SETTINGS.negative));
    assert.deepEqual(pipe.loader_settings, {
      ...SETTINGS,
      vae_name: "Baked VAE",
      clip_skip: 0,
      lora_name: "None",
      lora_model_strength: 1,
      lora_clip_strength: 1,
      positive_token_normalization: "none",
      positive_weight_interpretation: "comfy",
      negative_token_normalization: "none",
      negative_weight_interpretation: "comfy",
      a1111_prompt_style: false,
      steps: 20,
    });
  });

  it("encodes as the settings say", async () => {
    const { clip } = await host.loadCheckpoint(SETTINGS.ckpt_name);
    const settings = { positive_token_normalization: "length+mean", positive_weight_interpretation: "A1111" };
    const [pipe] = (await load(settings)).result;
    const options = { tokenNormalization: "length+mean", weightInterpretation: "A1111" };
    assert.deepEqual(pipe.positive, await encodePrompt(clip, SETTINGS.positive, options));
    const [styled] = (await load({ positive: "[a:b:0.5]", a1111_prompt_style: true, steps: 4 })).result;
    assert.equal(styled.positive?.length, 2);
  });

  it("has as many latent channels as the model", async () => {
    const [pipe] = (await load({ ckpt_name: "preview-flux.safetensors" })).result;
    assert.deepEqual(pipe.samples?.samples.shape, [2, 16, 9, 16]);
  });

  it("refuses bad inputs by name", async () => {
    const bad: [string, unknown][] = [
      ["ckpt_name", "other.safetensors"],
      ["ckpt_name", undefined],
      ["positive", null],
      ["negative", ["x"]],
      ["batch_size", 0],
      ["batch_size", 4097],
      ["empty_latent_width", 15],
      ["empty_latent_width", 1e6],
      ["empty_latent_height", Number.NaN],
      ["positive_token_normalization", "bogus"],
      ["positive_weight_interpretation", "fixed attention"],
      ["negative_weight_interpretation", "bogus"],
      ["a1111_prompt_style", "maybe"],
      ["steps", 0],
      ["steps", 10001],
    ];
    for (const [name, value] of bad) {
      await refuses(load({ [name]: value }), /^input\./, new RegExp(`ext pipeLoader, input "${name}"`));
    }
    const huge = { batch_size: 4096, empty_latent_width: 16384, empty_latent_height: 16384 };
    await refuses(load(huge), "tensor.too-large");
  });
});

describe("ext pipeOut", () => {
  it("takes a pipe apart", async () => {
    const [pipe] = (await load()).result;
    const { result } = await invokeNode("ext pipeOut", { pipe });
    assert.deepEqual(result, [pipe, pipe.model, pipe.positive, pipe.negative, pipe.samples, pipe.vae, pipe.clip]);
    assert.equal(result[0], pipe);
  });

  it("gives null for what is not there", async () => {
    const { result } = await invokeNode("ext pipeOut", { pipe: {} });
    assert.deepEqual(result, [{}, null, null, null, null, null, null]);
  });

  it("refuses anything but a pipe", async () => {
    for (const pipe of [undefined, null, "pipe", []]) {
      await refuses(invokeNode("ext pipeOut", { pipe }), /^input\./, /input "pipe"/);
    }
  });
});

describe("ext pipeEdit", () => {
  it("changes a copy", async () => {
    const [pipe] = (await load()).result;
    const before = { ...pipe };
    Object.freeze(pipe);
    const latent = { samples: Tensor.zeros([1, 4, 2, 2]) };
    const positive: Conditioning = [[Tensor.zeros([1, 77, 8]), {}]];
    const [edited] = (await invokeNode("ext pipeEdit", { pipe, latent, positive })).result;
    assert.deepEqual(edited, { ...before, samples: latent, positive });
    assert.deepEqual(pipe, before);
    assert.equal(edited.loader_settings, pipe.loader_settings);
  });

  it("keeps everything if nothing is given", async () => {
    const [pipe] = (await load()).result;
    const [edited] = (await invokeNode("ext pipeEdit", { pipe })).result;
    assert.deepEqual(edited, pipe);
    assert.notEqual(edited, pipe);
  });

  it("refuses parts of the wrong type", async () => {
    for (const name of ["model", "positive", "negative", "latent", "vae", "clip"]) {
      await refuses(invokeNode("ext pipeEdit", { pipe: {}, [name]: 5 }), "input.wrong-type", new RegExp(`"${name}"`));
    }
  });
});

describe("ext latentCompositeMaskedWithCond", () => {
  interface Entry {
    is_input_positive: boolean;
    cond: string | null;
    shape: number[];
    keys: string[];
    mask: "source" | "destination";
    mask_shape: number[];
  }

  interface Case {
    id: string;
    text_combine: string[] | string;
    text_combine_mode: string;
    replace_text: string;
    source_latent: string;
    destination_latent: string;
    source_mask: string;
    destination_mask: string;
    loader_settings: Record<string, unknown>;
    n_positive: number;
    out_positive?: string | null;
    out_loader_keys?: string[];
    pipe_keys?: string[];
    samples?: string;
    samples_keys?: string[];
    conditioning?: Entry[][];
    error?: string;
  }

  type Conditioning = [Tensor, Record<string, unknown>][];

  const KEY = "ext latentCompositeMaskedWithCond";

  const { cases, tensor } = golden<Case>("composite_cond");

  function pipeOf(one: Case): Record<string, unknown> {
    const extra = one.samples_keys?.includes("noise_mask") ?? false;
    return {
      clip: fakeClip("l"),
      positive: Array.from({ length: one.n_positive }, (_, i) => [
        tensor(`pos.${i}`),
        { pooled_output: tensor(`pos.${i}.pooled`) },
      ]),
      samples: {
        samples: tensor(one.destination_latent),
        ...(extra && { noise_mask: Tensor.zeros([1, 8, 8]), batch_index: [0] }),
      },
      loader_settings: one.loader_settings,
      other: 1,
    };
  }

  describe("golden", () => {
    for (const one of cases) {
      it(one.id, async () => {
        const pipe = pipeOf(one);
        const masks = { source: tensor(one.source_mask), destination: tensor(one.destination_mask) };
        const inputs = {
          pipe,
          text_combine: one.text_combine,
          source_latent: { samples: tensor(one.source_latent), noise_mask: Tensor.zeros([1, 1, 1]) },
          source_mask: masks.source,
          destination_mask: masks.destination,
          text_combine_mode: one.text_combine_mode,
          replace_text: one.replace_text,
        };
        // decision: a mode that is not on the list is refused
        if (one.id === "bad_mode") {
          await refuses(invokeNode(KEY, inputs), "input.not-in-list", /"text_combine_mode"/, /add, replace or cover/);
          return;
        }
        if (one.error !== undefined) {
          await refuses(invokeNode(KEY, inputs), "input.invalid", /"source_latent"/, /channels/);
          return;
        }
        const { result } = await invokeNode(KEY, inputs);
        const [out, latent, conditioning] = result as [
          Record<string, unknown>,
          Record<string, unknown>,
          Conditioning[],
        ];
        checkLatent(one, latent);
        assert.equal(out.samples, latent);
        assert.deepEqual(Object.keys(out).sort(), one.pipe_keys);
        assert.equal(out.positive, pipe.positive);
        const settings = out.loader_settings as Record<string, unknown>;
        assert.deepEqual(Object.keys(settings).sort(), one.out_loader_keys);
        // decisions: one text is a list of one, and without texts the prompt stays
        const positive = { string_text_iterates_chars: "ab", empty_list: one.loader_settings.positive }[one.id];
        assert.equal(settings.positive, positive ?? one.out_positive);
        if (one.id === "string_text_iterates_chars") assert.equal(conditioning.length, 1);
        else checkConditioning(one, conditioning, pipe, masks);
      });
    }

    function checkLatent(one: Case, latent: Record<string, unknown>): void {
      const expected = tensor(one.samples!);
      const source = tensor(one.source_latent);
      const [, , height, width] = expected.shape;
      // decision: covered elements are the source's, so that NaN of the destination does not come through
      if (one.destination_latent === "nan_dst") {
        const covered = Math.min(height!, source.shape[2]!) * Math.min(width!, source.shape[3]!);
        assert.ok(covered > 0);
        pasteInto(expected, source);
      }
      assertSameBits(latent.samples, expected);
      assert.deepEqual(Object.keys(latent).sort(), one.samples_keys);
    }

    function pasteInto(target: Tensor, source: Tensor): void {
      const [, channels, height, width] = target.shape as [number, number, number, number];
      const [, , sourceHeight, sourceWidth] = source.shape as [number, number, number, number];
      for (let c = 0; c < channels; c++)
        for (let y = 0; y < Math.min(height, sourceHeight); y++)
          for (let x = 0; x < Math.min(width, sourceWidth); x++)
            target.data[(c * height + y) * width + x] = source.data[(c * sourceHeight + y) * sourceWidth + x]!;
    }

    function checkConditioning(
      one: Case,
      conditioning: Conditioning[],
      pipe: Record<string, unknown>,
      masks: { source: Tensor; destination: Tensor },
    ): void {
      assert.equal(conditioning.length, one.conditioning!.length);
      for (const [i, entries] of one.conditioning!.entries()) {
        assert.equal(conditioning[i]!.length, entries.length);
        for (const [j, entry] of entries.entries()) {
          const [cond, options] = conditioning[i]![j]!;
          if (entry.is_input_positive) assert.equal(cond, (pipe.positive as Conditioning)[j]![0]);
          if (entry.cond !== null) assertClose(cond, tensor(entry.cond), (x) => 1e-5 * Math.max(1, Math.abs(x)));
          assert.deepEqual([...cond.shape], entry.shape);
          assert.deepEqual(Object.keys(options).sort(), entry.keys);
          assert.deepEqual([options.mask_strength, options.set_area_to_bounds], [1, false]);
          assertSameBits(options.mask, masks[entry.mask].reshape(entry.mask_shape));
        }
      }
      for (const [, options] of pipe.positive as Conditioning)
        assert.deepEqual(Object.keys(options), ["pooled_output"]);
    }
  });

  const one = cases[0]!;
  const inputs = () => ({
    pipe: pipeOf(one),
    text_combine: ["a"],
    source_latent: { samples: tensor("small") },
    source_mask: tensor("m3d"),
    destination_mask: tensor("m2d"),
    text_combine_mode: "add",
    replace_text: "",
  });

  it("refuses texts of other types", async () => {
    for (const text_combine of [[5], ["a", null], {}, 5]) {
      await refuses(invokeNode(KEY, { ...inputs(), text_combine }), "input.wrong-type", /"text_combine"/);
    }
  });

  it("names what the pipe lacks", async () => {
    for (const field of ["samples", "clip", "positive"]) {
      const pipe = { ...pipeOf(one), [field]: null };
      await refuses(invokeNode(KEY, { ...inputs(), pipe }), "input.missing", new RegExp(`pipe.${field}`));
    }
    const pipe = { ...pipeOf(one), loader_settings: {} };
    await refuses(invokeNode(KEY, { ...inputs(), pipe }), "input.missing", /loader_settings.positive/);
    const covered = await invokeNode(KEY, { ...inputs(), pipe, text_combine_mode: "cover" });
    assert.deepEqual((covered.result[0] as Record<string, unknown>).loader_settings, { positive: "a" });
  });

  it("works without texts on a pipe without clip", async () => {
    const pipe = { samples: { samples: tensor("dst") } };
    const { result } = await invokeNode(KEY, { ...inputs(), pipe, text_combine: [] });
    assert.deepEqual(result[2], []);
  });
});
