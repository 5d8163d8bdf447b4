import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { type Card, createGenerator, LatentkitError, randn, Tensor } from "latentkit";
import { scale } from "#src/tensor/ops.js";
import { scaledRandn, uniforms } from "#src/tensor/random.js";
import { assertSameBits } from "../../helpers/tensor/bits.js";
import { golden } from "../../helpers/tensor/golden.js";

const sha256 = (data: Float32Array): string =>
  createHash("sha256")
    .update(new Uint8Array(data.buffer, data.byteOffset, data.byteLength))
    .digest("hex");

interface CpuCase {
  id: string;
  seed: string;
  kind: "randn" | "sequence" | "prepare_noise";
  sha256_avx2: string;
  shape?: number[];
  calls?: number[];
  latent_shape?: number[];
  noise_inds?: number[];
}

describe("randn, source CPU", () => {
  const { cases } = golden<CpuCase>("rng_cpu");

  it("has PyTorch's bits in 306 of 306 golden cases", () => {
    assert.equal(cases.length, 306);
    const wrong = cases.filter((c) => sha256(values(c)) !== c.sha256_avx2).map((c) => c.id);
    assert.deepEqual(wrong, []);
  });

  function values({ seed, kind, shape, calls, latent_shape, noise_inds }: CpuCase): Float32Array {
    if (kind === "randn") return randn(shape!, { seed }).data;
    if (kind === "prepare_noise") {
      const shapeOfBatch = [noise_inds!.length, ...latent_shape!.slice(1)];
      return randn(shapeOfBatch, { seed, batchIndex: noise_inds! }).data;
    }
    const generator = createGenerator({ seed });
    return Float32Array.from(calls!.flatMap((count) => [...generator.randn([count]).data]));
  }

  it("takes the low 32 bits of the seed, in any form", () => {
    const expected = randn([20], { seed: 5 }).data;
    assert.deepEqual(randn([20], { seed: 5n + 2n ** 32n }).data, expected);
    assert.deepEqual(randn([20], { seed: "4294967301" }).data, expected);
  });

  it("shares one draw between equal indices", () => {
    const noise = randn([3, 4, 2, 2], { seed: 1, batchIndex: [2, 0, 2] });
    assert.deepEqual(noise.data.slice(0, 16), noise.data.slice(32));
    assert.notDeepEqual(noise.data.slice(0, 16), noise.data.slice(16, 32));
  });

  it("draws into out and continues the stream, for either source", () => {
    for (const source of ["CPU", "GPU"] as const) {
      const generator = createGenerator({ seed: 5, source });
      const out = Tensor.zeros([4, 40]);
      assert.equal(generator.randn([4, 40], out), out);
      const whole = createGenerator({ seed: 5, source });
      assert.deepEqual(out.data, whole.randn([4, 40]).data);
      assert.deepEqual(generator.randn([9], Tensor.zeros([9])).data, whole.randn([9]).data);
      const batch = { seed: 5, source, batchIndex: [1, 0, 1, 3] };
      assert.deepEqual(randn([4, 40], { ...batch, out }).data, randn([4, 40], batch).data);
    }
    assert.throws(() => randn([4], { seed: 0, out: Tensor.zeros([2, 2]) }), { code: "tensor.bad-shape" });
    const message = "randn out: expected a tensor of shape [4], received a list of 0.";
    assert.throws(() => randn([4], { seed: 0, out: [] as unknown as Tensor }), { message });
  });

  it("draws nothing for an empty shape and leaves the stream alone", () => {
    const generator = createGenerator({ seed: 3 });
    assert.equal(generator.randn([0, 4]).size, 0);
    assert.deepEqual(generator.randn([16]).data, randn([16], { seed: 3 }).data);
  });
});

describe("scaledRandn", () => {
  it("has the bits of randn and scale, for either source, on 200 random shapes", () => {
    for (let round = 0; round < 200; round++) {
      const shape = [1 + (round % 5), 1 + ((round * 7) % 11), 1 + ((round * 131) % 257)];
      const [seed, k] = [round * 1e9, round % 10 === 0 ? 0 : (round - 100) * 0.37];
      const card = { threads: 256 * (1 + (round % 3)) };
      for (const source of ["CPU", "GPU"] as const) {
        const expected = scale(randn(shape, { seed, source, card }), k);
        assertSameBits(scaledRandn(shape, k, { seed, source, card }), expected);
        const out = Tensor.zeros(shape);
        assert.equal(scaledRandn(shape, k, { seed, source, card, out }), out);
        assertSameBits(out, expected);
      }
    }
  });

  it("refuses what randn refuses", () => {
    assert.throws(() => scaledRandn([1], 2, { seed: -1, source: "GPU" }), { code: "value.out-of-range" });
    assert.throws(() => scaledRandn([1], 2, { seed: 1, source: "TPU" as "CPU" }), { code: "value.invalid" });
    const out = Tensor.zeros([2]);
    assert.throws(() => scaledRandn([1], 2, { seed: 1, source: "GPU", out }), { code: "tensor.bad-shape" });
  });
});

interface CudaCase {
  id: string;
  kind: "randn" | "sequence" | "profile" | "published_real_gpu_values";
  seed: string;
  profile?: string;
  threads_cap?: number | null;
  shape: number[];
  calls?: number[];
  indices?: number[];
  data: string;
  expected?: Record<string, number[]>;
}

describe("randn, source GPU", () => {
  const { cases, tensor } = golden<CudaCase>("rng_cuda");
  const cards: Record<string, Card> = {
    // no cap: a grid that no golden shape fills
    a1111: { threads: 2 ** 30 },
    sm75_T4_40x1024: "T4",
    sm86_RTX3090_82x1536: "RTX3090",
    sm89_RTX4090_128x1536: "RTX4090",
    sm80_A100_108x2048: "A100",
    sm90_H100_132x2048: "H100",
  };

  for (const kind of ["randn", "sequence", "profile"] as const) {
    it(`is within 2e-5 of the reference: ${kind}`, () => {
      const chosen = cases.filter((c) => c.kind === kind);
      assert.ok(chosen.length > 0);
      for (const c of chosen) {
        const all = cudaValues(c, cards[c.profile!]!);
        const got = c.indices === undefined ? [...all] : c.indices.map((index) => all[index]!);
        const expected = tensor(c.data).data;
        assert.equal(got.length, expected.length, c.id);
        for (const [i, value] of got.entries()) {
          assert.ok(Math.abs(value - expected[i]!) <= 2e-5, `${c.id}[${i}]: ${value}, not ${expected[i]}`);
        }
      }
    });
  }

  it("is within 6e-5 of values printed by real cards", () => {
    for (const c of cases.filter(({ kind }) => kind === "published_real_gpu_values")) {
      const all = randn(c.shape, { seed: c.seed, source: "GPU", card: { threads: c.threads_cap! } }).data;
      for (const [start, expected] of Object.entries(c.expected!)) {
        for (const [i, value] of expected.entries()) {
          assert.ok(Math.abs(all[Number(start) + i]! - value) <= 6e-5, `${c.id} at ${start} + ${i}`);
        }
      }
    }
  });

  function cudaValues({ kind, seed, shape, calls }: CudaCase, card: Card): Float32Array {
    if (kind !== "sequence") return randn(shape, { seed, source: "GPU", card }).data;
    const generator = createGenerator({ seed, source: "GPU", card });
    return Float32Array.from(calls!.flatMap((count) => [...generator.randn([count]).data]));
  }

  it("uses all 64 bits of the seed and the H100's grid by default", () => {
    assert.notDeepEqual(
      randn([20], { seed: 1n << 40n, source: "GPU" }).data,
      randn([20], { seed: 0, source: "GPU" }).data,
    );
    const beyond = [300_000];
    const byDefault = randn(beyond, { seed: 9, source: "GPU" }).data;
    assert.deepEqual(byDefault, randn(beyond, { seed: 9, source: "GPU", card: "H100" }).data);
    assert.notDeepEqual(byDefault, randn(beyond, { seed: 9, source: "GPU", card: "T4" }).data);
  });
});

describe("randn, misuse", () => {
  const refuses = (call: () => unknown, pattern: RegExp): void => {
    assert.throws(call, (error: unknown) => error instanceof LatentkitError && pattern.test(error.message));
  };

  it("refuses seeds outside 0 … 2^64-1 and fractions", () => {
    for (const seed of [-1, 2n ** 64n, "-1", "18446744073709551616"]) refuses(() => randn([1], { seed }), /^seed: /);
    for (const seed of [0.5, Number.NaN, 2 ** 53, "1.5", "", "0x10", "1e3", null, true]) {
      refuses(() => randn([1], { seed: seed as number }), /^seed: expected a whole number/);
    }
    assert.equal(randn([1], { seed: 18446744073709551615n }).size, 1);
  });

  it("refuses unknown sources, cards and indices", () => {
    refuses(() => randn([1], { seed: 0, source: "TPU" as "CPU" }), /source: expected CPU or GPU, received "TPU"/);
    refuses(() => randn([1], { seed: 0, source: "GPU", card: "GTX" as "T4" }), /card: expected T4/);
    refuses(() => randn([1], { seed: 0, source: "GPU", card: { threads: 100 } }), /multiple of 256, received 100/);
    refuses(() => randn([2, 4], { seed: 0, batchIndex: [0] }), /one index for each of the 2 items/);
    refuses(() => randn([1, 4], { seed: 0, batchIndex: [-1] }), /batchIndex: .* received -1/);
    refuses(() => randn([1, 4], { seed: 0, batchIndex: [1e9] }), /batchIndex: .* received 1000000000/);
    refuses(
      () => randn([1, 4, 512, 512], { seed: 0, batchIndex: [2000] }),
      /Shape \[2001, 4, 512, 512\]: expected at most/,
    );
  });

  it("refuses shapes that cannot be allocated before it tries", () => {
    refuses(() => randn([1e6, 1e6], { seed: 0 }), /at most 1073741824 elements/);
    refuses(() => randn([1, -4], { seed: 0 }), /whole numbers from 0, received -4/);
    refuses(() => randn([1.5], { seed: 0 }), /received 1.5/);
  });
});

describe("uniforms", () => {
  it("takes the low 24 bits of MT19937's words", () => {
    // the generator's published first outputs for seed 5489
    const words = [3499211612, 581869302, 3890346734, 3586334585, 545404204];
    const expected = words.map((word) => (word % 2 ** 24) / 2 ** 24);
    assert.deepEqual([...uniforms([5], 5489).data], expected);
  });

  it("goes on behind the first state", () => {
    const { data } = uniforms([2, 700], 5489);
    assert.equal(new Set(data).size > 1390, true);
    assert.ok(data.every((value) => value >= 0 && value < 1));
    // the ten-thousandth output of std::mt19937, which C++ requires
    assert.equal(uniforms([10_000], 5489).data[9999], (4123659995 % 2 ** 24) / 2 ** 24);
  });
});
