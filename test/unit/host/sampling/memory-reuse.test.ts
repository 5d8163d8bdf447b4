import assert from "node:assert/strict";
import { type Latent, type Model, modelSampling, randn, SAMPLERS, type Sampler, Tensor } from "latentkit";
import { DenoisingRun } from "#src/host/sampling/denoising-run.js";
import type { Guider } from "#src/host/sampling/guiders.js";
import { type SampleOptions, sample } from "#src/host/sampling/sample.js";
import { withDevice } from "#src/tensor/device/device.js";
import { clearPool } from "#src/tensor/memory-pool.js";
import { scale, type Term } from "#src/tensor/ops.js";
import { assertClose, assertSameBits } from "../../../helpers/tensor/bits.js";

/** A shape large enough for pooled memory. */
const SHAPE = [1, 4, 32, 32];
const SAMPLING = modelSampling("sd15");
const SIGMAS = Float32Array.of(14, 9, 6, 4, 2.5, 1.5, 0.8, 0.3, 0);
const MASK = Tensor.from(
  randn([1, 32, 32], { seed: 3 }).data.map((value) => Number(value > 0)),
  [1, 32, 32],
);
const entry = (value: number): [Tensor, Record<string, unknown>] => [Tensor.full([1, 1, 1], value), {}];

type Predict = NonNullable<Model["predict"]>;

/** A Gaussian's estimate around the value of each entry, in a new tensor. */
const gaussian: Predict = async (x, sigma, cond) => {
  const part = x.size / cond.length;
  const means = cond.map(([{ data }]) => data[0]!);
  const values = x.data.map((value, i) => means[Math.floor(i / part)]! + (value - 0.1) / (1 + sigma * sigma));
  return Tensor.from(values, x.shape);
};

/** A Gaussian's estimate, but that of another model at these noise levels. */
const at =
  (levels: readonly number[], other: Predict): Predict =>
  (x, sigma, cond) =>
    (levels.includes(sigma) ? other : gaussian)(x, sigma, cond);

const optionsOf = (sampler: Sampler, model: Model, changes: Partial<SampleOptions> = {}): SampleOptions => ({
  guider: { kind: "cfg", model, positive: [entry(0.5)], negative: [entry(-0.25)], cfg: 3 },
  sampler: { sampler, options: {} },
  sigmas: SIGMAS,
  noise: { seed: 5n, enabled: true },
  latent: { samples: Tensor.zeros(SHAPE) },
  ...changes,
});

const run = async (options: SampleOptions): Promise<[Tensor, Tensor]> => {
  const { latent, denoised } = await sample(options);
  return [latent.samples, denoised.samples];
};

const copyOf = (combined: Tensor | readonly Term[]): Tensor | readonly Term[] =>
  combined instanceof Tensor ? combined.clone() : combined.map(([coefficient, x]): Term => [coefficient, x.clone()]);

/** The same run with new memory for everything. */
async function runAnew(options: SampleOptions): Promise<[Tensor, Tensor]> {
  const { keepOnly, next } = DenoisingRun.prototype;
  DenoisingRun.prototype.keepOnly = () => {};
  DenoisingRun.prototype.next = DenoisingRun.prototype.sum;
  try {
    return await run(options);
  } finally {
    Object.assign(DenoisingRun.prototype, { keepOnly, next });
  }
}

const fresh: Predict = (...call) => {
  clearPool();
  return gaussian(...call);
};

async function assertSame(actual: Promise<[Tensor, Tensor]>, expected: Promise<[Tensor, Tensor]>): Promise<void> {
  const [one, other] = [await actual, await expected];
  assertSameBits(one[0], other[0]);
  assertSameBits(one[1], other[1]);
}

describe("sampling in memory that is used again", () => {
  /** Tensors that are made after a run, held so that each takes memory of its own. */
  const later: Tensor[] = [];
  const model = { sampling: SAMPLING, predict: gaussian };
  const unpooled = { sampling: SAMPLING, predict: fresh };
  const inpainted: Latent = { samples: randn(SHAPE, { seed: 2 }), noise_mask: MASK };

  for (const sampler of SAMPLERS) {
    it(`${sampler} has the bits of a run in new memory, with a mask too`, async () => {
      for (const latent of [{ samples: Tensor.zeros(SHAPE) }, inpainted]) {
        for (const sigmas of [SIGMAS, SIGMAS.slice(0, -1)]) {
          const expected = await runAnew(optionsOf(sampler, unpooled, { latent, sigmas }));
          await assertSame(run(optionsOf(sampler, model, { latent, sigmas })), Promise.resolve(expected));
        }
      }
    });
  }

  const { allocUnsafeSlow } = Buffer;
  afterEach(() => {
    Buffer.allocUnsafeSlow = allocUnsafeSlow;
  });

  for (const sampler of SAMPLERS) {
    it(`${sampler}: a run like one before takes new memory for its result alone`, () =>
      // a device has a pool of its own
      withDevice("cpu", async () => {
        const latent = { samples: Tensor.zeros([1, 4, 64, 64]) };
        const constant = Tensor.full([2, 4, 64, 64], 0.1);
        const options = optionsOf(sampler, { sampling: SAMPLING, predict: async (x) => part(constant, x) }, { latent });
        const { latent: expected } = await sample(options);
        clearPool();
        for (let runs = 0; runs < 2; runs++) await sample(options, false);
        const taken: number[] = [];
        Buffer.allocUnsafeSlow = (bytes) => {
          taken.push(bytes);
          return allocUnsafeSlow(bytes);
        };
        const { latent: result } = await sample(options, false);
        assert.deepEqual(taken, [4 * 4 * 64 * 64]);
        assertSameBits(result.samples, expected.samples);
      }));
  }

  for (const sampler of ["euler", "dpmpp_2m", "dpmpp_2m_cfg_pp", "er_sde", "heun", "uni_pc"] as const) {
    it(`${sampler}: a model may return its input, and one tensor every time`, async () => {
      const kept = randn([2, ...SHAPE.slice(1)], { seed: 4 });
      const before = kept.clone();
      const pairs: readonly (readonly [Predict, Predict])[] = [
        [async (x) => x, async (x) => x.clone()],
        [at([9, 4, 1.5], async (x) => x), at([9, 4, 1.5], async (x) => x.clone())],
        [async (x) => Tensor.from(x.data.subarray(), x.shape), async (x) => x.clone()],
        [async (x) => part(kept, x), async (x) => part(kept, x).clone()],
      ];
      for (const [shared, own] of pairs) {
        for (const [kind, sigmas] of [
          ["cfg", SIGMAS],
          ["basic", SIGMAS],
          ["basic", Float32Array.of(5, 2)],
        ] as const) {
          const of = (predict: Predict): SampleOptions => {
            const guided = optionsOf(sampler, { sampling: SAMPLING, predict }, { sigmas });
            if (kind === "cfg") return guided;
            return { ...guided, guider: { kind, model: guided.guider.model, positive: [entry(0.5)] } };
          };
          await assertSame(run(of(shared)), run(of(own)));
        }
      }
      assertSameBits(kept, before);
    });
  }

  for (const sampler of SAMPLERS) {
    it(`${sampler}: a model's own tensors stay as they are, in the run and after it`, async () => {
      const kept = [1, 2, 3].map((seed) => randn([2, ...SHAPE.slice(1)], { seed }));
      const before = kept.map((tensor) => tensor.clone());
      let calls = 0;
      const predict: Predict = async (x) => {
        const own = kept[calls++ % kept.length]!;
        return x.hasShape(own) ? own : own.part(0, x);
      };
      const cfg = optionsOf(sampler, { sampling: SAMPLING, predict });
      const basic: Guider = { kind: "basic", model: cfg.guider.model, positive: [entry(0.5)] };
      for (const guider of [cfg.guider, basic]) {
        await run({ ...cfg, guider });
        // what the run returned to the pool is written over
        for (let seed = 0; seed < 40; seed++) later.push(randn(SHAPE, { seed }));
        later.length = 0;
        for (const [i, tensor] of kept.entries()) assertSameBits(tensor, before[i]!);
      }
    });
  }

  it("keeps an input of zeros that the model returns", async () => {
    const samples = scale(Tensor.full(SHAPE, 1), 0);
    const model = { sampling: SAMPLING, predict: async (x: Tensor) => x };
    const guider: Guider = { kind: "basic", model, positive: [entry(0.5)] };
    const sigmas = Float32Array.of(5, 0);
    await sample(
      optionsOf("euler", model, { guider, noise: { seed: 5n, enabled: false }, latent: { samples }, sigmas }),
    );
    for (let seed = 0; seed < 40; seed++) later.push(randn(SHAPE, { seed }));
    later.length = 0;
    assertSameBits(samples, Tensor.zeros(SHAPE));
  });

  it("keeps what guidance returns, be it x or an estimate", async () => {
    const guidances: readonly NonNullable<Model["guidance"]>[] = [
      { combine: ({ x }) => x },
      { combine: ({ uncond }) => uncond },
      {
        combine: ({ x, cond, sum }) =>
          sum([
            [0.1, x],
            [0.9, sum([[0.5, cond]])],
          ]),
      },
      {
        combine: ({ x, cond, uncond }) => [
          [0.1, x],
          [1.5, cond],
          [-0.6, uncond],
        ],
      },
      { after: [(_, { x }) => x] },
      { after: [(denoised) => denoised] },
      { after: [(denoised) => denoised.reshape(denoised.shape)] },
    ];
    for (const guidance of guidances) {
      const copying: typeof guidance = {
        combine: guidance.combine && (async (step) => copyOf(await guidance.combine!(step))),
        after: guidance.after?.map((change) => async (denoised, step) => (await change(denoised, step)).clone()),
      };
      for (const sampler of ["euler", "dpmpp_2m", "er_sde"] as const) {
        const expected = await runAnew(optionsOf(sampler, { ...unpooled, guidance: copying }));
        await assertSame(run(optionsOf(sampler, { ...model, guidance })), Promise.resolve(expected));
      }
    }
  });

  it("writes every latent but the first over the one before it", async () => {
    const inputs = new Set<ArrayBufferLike>();
    const predict: Predict = (x, ...more) => {
      inputs.add(x.data.buffer);
      return gaussian(x, ...more);
    };
    await withDevice("cpu", () => run(optionsOf("euler", { sampling: SAMPLING, predict })));
    // the first latent is the solver's to the end
    assert.equal(inputs.size, 2);
  });

  it("leaves a latent that the solver begins with to its owner", async () => {
    const zeros = scale(randn([1, 4, 64, 64], { seed: 6 }), 0);
    const options = optionsOf("euler", model, { latent: { samples: zeros }, noise: { seed: 5n, enabled: false } });
    await sample(options);
    const taken = Array.from({ length: 8 }, () => Tensor.unfilled(zeros.shape).data.buffer);
    assert.ok(!taken.includes(zeros.data.buffer));
  });

  it("leaves the estimate of the last step to its listener", async () => {
    const estimates: Tensor[] = [];
    const [, denoised] = await run(optionsOf("euler", model, { onStep: (step) => void estimates.push(step.denoised) }));
    const { scaleFactor } = SAMPLING.latentFormat;
    const last = estimates.at(-1)!.data.map((value) => value * (1 / scaleFactor));
    assert.equal(estimates.length, SIGMAS.length - 1);
    assertClose(Tensor.from(last, SHAPE), denoised, (x) => 1e-6 * Math.abs(x), "last estimate");
  });
});

const part = (kept: Tensor, x: Tensor): Tensor => Tensor.from(kept.data.subarray(0, x.size), x.shape);
