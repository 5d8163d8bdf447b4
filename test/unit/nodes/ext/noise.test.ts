import assert from "node:assert/strict";
import { invokeNode, type ModelSampling, type ModelSamplingName, modelSampling, Tensor } from "latentkit";
import { refuses } from "../../../helpers/errors.js";
import { assertClose, assertSameBits, sha256 } from "../../../helpers/tensor/bits.js";
import { golden, nonFinite } from "../../../helpers/tensor/golden.js";

describe("ext latentNoisy", () => {
  interface Case {
    id: string;
    model: string;
    sampler_name: string;
    scheduler: string;
    steps: number;
    start_at_step: number;
    end_at_step: number;
    seed: string;
    source?: string;
    loader_settings?: Record<string, unknown>;
    sigma?: number | string;
    samples_shape?: number[];
    samples_sha256?: string;
    head?: string;
    optional_latent?: string;
    out?: string;
    error?: string;
  }

  const KEY = "ext latentNoisy";
  const NAMES: Record<string, ModelSamplingName> = { edm: "playground25", v: "sd21-v-zsnr" };
  const f32 = Math.fround;

  const samplingOf = (name: string): ModelSampling =>
    modelSampling(NAMES[name] ?? (name.split(" ")[0] as ModelSamplingName));

  /** Relative, by scheduler, as test/golden/README.md says of sigmas; a difference of two keeps the larger one's error. */
  function toleranceOf({ scheduler, model }: Case): number {
    if (["simple", "ddim_uniform", "beta", "linear_quadratic"].includes(scheduler))
      return { flux: 2 ** -22, edm: 2 ** -20 }[model] ?? 0;
    if (scheduler === "kl_optimal") return model === "edm" ? 2e-5 : model === "v" ? 5e-4 : 2 ** -22;
    return model === "v" ? 1.5e-5 : 3e-6;
  }

  const { cases, tensor, raw } = golden<Case, { scale_factors: Record<string, number> }>("latent_noisy");

  describe("golden", () => {
    for (const one of cases.filter(({ sampler_name }) => sampler_name !== undefined)) {
      it(`${one.id}: ${one.model} ${one.sampler_name} ${one.scheduler} ${one.steps}`, () =>
        one.optional_latent === undefined ? drawn(one) : given(one));
    }

    async function drawn(one: Case): Promise<void> {
      const { sampler_name, scheduler, steps, start_at_step, end_at_step, seed, source } = one;
      const pipe = { model: { sampling: samplingOf(one.model) }, loader_settings: one.loader_settings, seed: 5 };
      const inputs = { sampler_name, scheduler, steps, start_at_step, end_at_step, seed, source, pipe };
      // decision: a sampler or scheduler that is not on the list is refused
      if (sampler_name === "nonexistent") {
        await refuses(invokeNode(KEY, inputs), "input.not-in-list", /"sampler_name"/);
        return;
      }
      const { result } = await invokeNode(KEY, inputs);
      const [outPipe, latent, sigma] = result as [Record<string, unknown>, { samples: Tensor }, number];
      assert.equal(outPipe.samples, latent);
      assert.deepEqual({ ...outPipe, samples: 0 }, { ...pipe, samples: 0 });
      // decision: short schedules, no steps and one step of kl_optimal have a sigma although the reference fails
      if (one.error !== undefined || one.sigma === "NaN") {
        assert.ok(Number.isFinite(sigma) && sigma >= 0, `sigma ${sigma}`);
        return;
      }
      const expected = nonFinite(one.sigma);
      assert.ok(
        Math.abs(sigma - expected) <= toleranceOf(one) * Math.max(expected, 0),
        `sigma ${sigma}, not ${expected}`,
      );
      assert.deepEqual([...latent.samples.shape], one.samples_shape);
      // bit for bit given the golden sigma: ours over our sigma is the same noise
      if (sigma === expected) assert.equal(sha256(latent.samples.data), one.samples_sha256);
      else assertNoise(latent.samples, sigma, tensor(one.head!), expected);
    }

    /** Both are noise times their sigma, so they differ by no more than the sigmas do. */
    function assertNoise(samples: Tensor, sigma: number, head: Tensor, expected: number): void {
      for (let i = 0; i < head.size; i++) {
        const scaled = (samples.data[i]! / sigma) * expected;
        assert.ok(Math.abs(scaled - head.data[i]!) <= 2 ** -21 * Math.abs(scaled), `element ${i}`);
      }
    }

    async function given(one: Case): Promise<void> {
      const { sampler_name, scheduler, steps, start_at_step, end_at_step, seed } = one;
      const samples = inFloat32(one.optional_latent!);
      const noise_mask = Tensor.zeros([1, 8, 8]);
      const optional_latent = { samples, noise_mask, batch_index: [0] };
      const { result } = await invokeNode(KEY, {
        sampler_name,
        scheduler,
        steps,
        start_at_step,
        end_at_step,
        seed,
        source: "CPU",
        pipe: { model: null, loader_settings: {} },
        optional_model: { sampling: samplingOf(one.model) },
        optional_latent,
      });
      const [, latent, sigma] = result as [unknown, Record<string, unknown>, number];
      assert.ok(Math.abs(sigma - nonFinite(one.sigma)) <= toleranceOf(one) * sigma);
      assert.deepEqual(Object.keys(latent).sort(), ["batch_index", "noise_mask", "samples"]);
      assert.equal(latent.noise_mask, noise_mask);
      const expected = Tensor.from(
        samples.data.map((x) => f32(x * sigma)),
        samples.shape,
      );
      assertSameBits(latent.samples, expected);
      if (sigma === one.sigma) assertSameBits(latent.samples, tensor(one.out!));
      assertSameBits(samples, inFloat32(one.optional_latent!));
    }

    /** Tensors are float32 here: a stored half becomes the same number. */
    function inFloat32(name: string): Tensor {
      const { dtype, data, shape } = raw(name);
      return Tensor.from(dtype === "F16" ? Float32Array.from(data, halfToNumber) : Float32Array.from(data), shape);
    }

    function halfToNumber(bits: number): number {
      const [sign, exponent, fraction] = [bits & 0x8000 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
      if (exponent === 0) return sign * fraction * 2 ** -24;
      return sign * (1024 + fraction) * 2 ** (exponent - 25);
    }

    it("uses every stored head", () => {
      for (const { head } of cases) if (head !== undefined) assert.equal(raw(head).dtype, "F32");
    });
  });

  const model = { sampling: modelSampling("sd15") };
  const settings = { batch_size: 1, empty_latent_height: 64, empty_latent_width: 64 };
  const base = {
    sampler_name: "euler",
    scheduler: "normal",
    steps: 20,
    start_at_step: 0,
    end_at_step: 20,
    source: "CPU",
    seed: 1,
  };

  it("needs a model somewhere, and a latent or loader_settings", async () => {
    const optional_latent = { samples: Tensor.full([1, 4, 2, 2], 1) };
    await refuses(invokeNode(KEY, base), "input.missing", /model/);
    await refuses(invokeNode(KEY, { ...base, pipe: { loader_settings: settings } }), "input.missing", /model/);
    await refuses(invokeNode(KEY, { ...base, optional_model: model }), "input.missing", /loader_settings/);
    await refuses(invokeNode(KEY, { ...base, pipe: { model } }), "input.missing", /loader_settings/);
    const { result } = await invokeNode(KEY, { ...base, optional_model: model, optional_latent });
    assert.deepEqual(Object.keys(result[0] as object), ["samples"]);
  });

  it("works with its defaults and every scheduler", async () => {
    for (const scheduler of ["ddim_uniform", "beta", "kl_optimal"]) {
      const pipe = { model, loader_settings: settings };
      const { result } = await invokeNode(KEY, { ...base, scheduler, steps: 10000, end_at_step: 10000, pipe });
      assert.ok(Math.abs((result[2] as number) - 14.6146 / 0.18215) < 0.01, `${scheduler}: ${result[2]}`);
    }
  });

  it("gives the GPU stream on any machine and the whole range of seeds", async () => {
    const pipe = { model, loader_settings: settings };
    const draw = async (source: string, seed: unknown) =>
      sha256(((await invokeNode(KEY, { ...base, source, seed, pipe })).result[1] as { samples: Tensor }).samples.data);
    assert.notEqual(await draw("CPU", 1), await draw("GPU", 1));
    assert.equal(await draw("GPU", "18446744073709551615"), await draw("GPU", 18446744073709551615n));
    assert.notEqual(await draw("GPU", 2n ** 32n), await draw("GPU", 0));
    assert.equal(await draw("CPU", 2n ** 32n), await draw("CPU", 0));
  });

  it("refuses sizes that could not be made, before it makes them", async () => {
    for (const [height, width, batch] of [
      [1e6, 1e6, 1],
      [8192, 8192, 1e6],
      [Number.MAX_SAFE_INTEGER, 8, 1],
    ]) {
      const loader_settings = { batch_size: batch, empty_latent_height: height, empty_latent_width: width };
      await refuses(
        invokeNode(KEY, { ...base, pipe: { model, loader_settings } }),
        "tensor.too-large",
        /ext latentNoisy/,
      );
    }
  });

  it("refuses settings that are not sizes", async () => {
    for (const [value, code] of [
      ["64", "input.wrong-type"],
      [-8, "input.below-minimum"],
      [Number.NaN, "input.not-finite"],
      [63.5, "input.not-finite"],
      [undefined, "input.missing"],
    ] as const) {
      const pipe = { model, loader_settings: { ...settings, empty_latent_height: value } };
      await refuses(invokeNode(KEY, { ...base, pipe }), code, /empty_latent_height/);
    }
    await refuses(
      invokeNode(KEY, { ...base, pipe: { model: { sampling: 5 }, loader_settings: settings } }),
      "input.wrong-type",
      /pipe.model/,
    );
  });

  it("hints at the name meant", async () => {
    const error = await refuses(
      invokeNode(KEY, { ...base, scheduler: "karas", optional_model: model }),
      "input.not-in-list",
    );
    assert.equal(error.details.suggestion, "karras");
  });
});

describe("ext injectNoiseToLatent", () => {
  interface Case {
    id: string;
    strength: number;
    average: boolean;
    normalize: boolean;
    latent?: string;
    latent_extra?: boolean;
    noise?: string;
    mask?: string;
    mix?: number;
    seed?: string;
    image?: string;
    batch_size?: number;
    vae?: boolean | string;
    vae_returned?: string;
    vae_saw_shape?: number[];
    pipe?: boolean;
    pipe_samples?: string;
    loader?: boolean;
    out?: string;
    out_keys?: string[];
    error?: string;
  }

  const KEY = "ext injectNoiseToLatent";

  const { cases, tensor } = golden<Case>("inject_noise");

  describe("golden", () => {
    for (const one of cases) {
      it(one.id, async () => {
        const seen: number[][] = [];
        const inputs = inputsOf(one, seen);
        const refusal = refusalOf(one);
        if (refusal !== undefined) {
          await refuses(invokeNode(KEY, inputs), ...refusal);
          return;
        }
        const { result } = await invokeNode(KEY, inputs);
        const latent = result[0] as Record<string, unknown>;
        if (one.out === undefined) {
          // decision: a pipe without vae or loader_settings is not an error
          assert.ok(["pipe_no_vae_key", "pipe_no_loader"].includes(one.id));
          assertSameBits(latent.samples, tensor(`out.${twin(one)}`));
          return;
        }
        const expected = tensor(one.out);
        if (isResized(one)) assertClose(latent.samples, expected, () => 1e-6);
        else assertSameBits(latent.samples, expected);
        assert.deepEqual(Object.keys(latent).sort(), one.out_keys);
        if (one.vae_saw_shape !== undefined) assert.deepEqual(seen, [one.vae_saw_shape]);
      });
    }

    /** A case of the same numbers whose pipe is whole. */
    const twin = ({ strength, latent, noise }: Case): string =>
      cases.find((other) => {
        const plain = !other.average && !other.normalize && other.mask === undefined && other.mix === undefined;
        const same = other.strength === strength && other.latent === latent && other.noise === noise;
        return plain && same && other.out !== undefined && other.out_keys?.length === 1;
      })!.id;

    function inputsOf(one: Case, seen: number[][]): Record<string, unknown> {
      const name = (key: string | undefined) => (key === undefined ? undefined : tensor(key));
      const latent = (key: string | undefined, extra = false) =>
        key === undefined
          ? undefined
          : { samples: tensor(key), ...(extra && { noise_mask: Tensor.zeros([1, 8, 8]), batch_index: [0] }) };
      const encode = async (image: Tensor) => {
        seen.push([...image.shape]);
        return tensor(one.vae_returned ?? "vae.image_batch2");
      };
      const pipe: Record<string, unknown> = {
        samples: latent(one.pipe_samples) ?? null,
        vae: one.vae === false ? null : { encode },
        loader_settings: one.batch_size === undefined ? {} : { batch_size: one.batch_size },
      };
      if (one.vae === "missing") delete pipe.vae;
      if (one.loader === false) delete pipe.loader_settings;
      // the stub answers one latent an image
      if (one.id === "image2_batch2_mismatch") pipe.vae = { encode: async () => tensor("lat") };
      return {
        strength: one.strength,
        average: one.average,
        normalize: one.normalize,
        pipe_to_noise: one.pipe === false ? undefined : pipe,
        image_to_latent: name(one.image),
        latent: latent(one.latent, one.latent_extra),
        noise: latent(one.noise),
        mask: name(one.mask),
        mix_randn_amount: one.mix,
        seed: one.seed,
      };
    }

    function refusalOf(one: Case): [code: string | RegExp, ...patterns: RegExp[]] | undefined {
      if (one.id === "no_pipe") return ["input.missing", /"pipe_to_noise"/];
      // decisions: bounds count, and a constant cannot be normalised
      if (one.id === "negative_mix") return ["input.below-minimum", /"mix_randn_amount"/, /-0.5/];
      if (one.id === "const_std0") return [/./, /deviation/];
      if (one.id === "video5d_mask") return ["input.invalid", /"mask"/];
      if (/pipe_no_/.test(one.id) || one.error === undefined) return undefined;
      if (one.mask !== undefined) return ["input.invalid", /"mask"/, /2 latents, (3|4|8) masks/];
      return ["tensor.bad-shape", /latent and noise must have the same shape/];
    }

    function isResized({ mask, out }: Case): boolean {
      if (mask === undefined) return false;
      const [height, width] = tensor(out!).shape.slice(-2);
      const [maskHeight, maskWidth] = tensor(mask).shape.slice(-2);
      return height !== maskHeight || width !== maskWidth;
    }
  });

  const zeros = (shape = [1, 4, 2, 2]) => ({ samples: Tensor.zeros(shape) });
  const ones = (shape = [1, 4, 2, 2]) => ({ samples: Tensor.full(shape, 1) });
  const base = { strength: 0.5, normalize: false, average: false, pipe_to_noise: {} };

  it("says where noise could come from", async () => {
    await refuses(invokeNode(KEY, { ...base, latent: ones() }), "input.missing", /no noise provided/);
    await refuses(
      invokeNode(KEY, { ...base, pipe_to_noise: { samples: 5 } }),
      "input.wrong-type",
      /pipe_to_noise.samples/,
    );
  });

  it("takes 123 for an absent seed", async () => {
    const inputs = { ...base, latent: zeros(), noise: ones(), mix_randn_amount: 1 };
    const { result } = await invokeNode(KEY, inputs);
    const seeded = await invokeNode(KEY, { ...inputs, seed: 123n });
    assertSameBits((result[0] as { samples: Tensor }).samples, (seeded.result[0] as { samples: Tensor }).samples);
  });

  it("grows a single latent under several masks, mixing included", async () => {
    const mask = Tensor.from([0, 0, 0, 0, 1, 1, 1, 1], [2, 2, 2]);
    const inputs = { ...base, latent: zeros(), noise: ones(), mask };
    const { result } = await invokeNode(KEY, inputs);
    const expected = Tensor.from([...new Array(16).fill(0), ...new Array(16).fill(0.5)], [2, 4, 2, 2]);
    assertSameBits((result[0] as { samples: Tensor }).samples, expected);
    const mixed = await invokeNode(KEY, { ...inputs, mix_randn_amount: 0.5, seed: 9 });
    const both = await invokeNode(KEY, {
      ...base,
      latent: { samples: expected },
      noise: { samples: expected },
      average: true,
      mix_randn_amount: 0.5,
      seed: 9,
    });
    assertSameBits((mixed.result[0] as { samples: Tensor }).samples, (both.result[0] as { samples: Tensor }).samples);
  });

  it("refuses a vae, a batch size and an image that do not fit", async () => {
    const image_to_latent = Tensor.zeros([1, 16, 16, 3]);
    const given = (pipe_to_noise: object, image = image_to_latent) =>
      invokeNode(KEY, { ...base, noise: ones(), pipe_to_noise, image_to_latent: image });
    const vae = { encode: async () => Tensor.zeros([1, 4, 2, 2]) };
    await refuses(given({ vae: 5 }), "input.wrong-type", /vae/);
    await refuses(given({ vae: { encode: async () => 5 } }), "input.wrong-type", /vae/);
    await refuses(given({ vae, loader_settings: { batch_size: 0 } }), "input.wrong-type", /batch_size/);
    // named by its shape, never made
    await refuses(given({ vae, loader_settings: { batch_size: 1e9 } }), "tensor.bad-shape", /same shape/);
    await refuses(given({ vae }, Tensor.zeros([1, 16, 16, 1])), "input.wrong-type", /image_to_latent/);
  });

  it("leaves its inputs as they are", async () => {
    const [latent, noise] = [ones(), ones()];
    await invokeNode(KEY, { ...base, latent, noise, normalize: false, mix_randn_amount: 0.3 });
    assertSameBits(latent.samples, Tensor.full([1, 4, 2, 2], 1));
    assertSameBits(noise.samples, Tensor.full([1, 4, 2, 2], 1));
  });
});
