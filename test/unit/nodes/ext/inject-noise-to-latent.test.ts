import assert from "node:assert/strict";
import { invokeNode, Tensor } from "latentkit";
import { refuses } from "../../../helpers/errors.js";
import { assertClose, assertSameBits } from "../../../helpers/tensor/bits.js";
import { golden } from "../../../helpers/tensor/golden.js";

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

describe("ext injectNoiseToLatent", () => {
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
          // decision: a pipe without vae or loader_settings is no error
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
