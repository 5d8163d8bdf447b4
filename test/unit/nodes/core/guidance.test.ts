import assert from "node:assert/strict";
import { type Conditioning, invokeNode, type Model, sigmas, Tensor } from "latentkit";
import { measure } from "#src/graph/memory/cache.js";
import { type Term, weightedSum } from "#src/tensor/ops.js";
import { refuses } from "../../../helpers/errors.js";
import { assertItems, dot, guidanceOf, itemOf, step, wave } from "../../../helpers/graph/guidance.js";
import { assertClose, assertSameBits } from "../../../helpers/tensor/bits.js";

describe("RescaleCFG", () => {
  const combined = async (multiplier: number, others: object = {}): Promise<Tensor> =>
    weightedSum((await (await guidanceOf("RescaleCFG", { multiplier })).guidance.combine!(step(others))) as Term[]);
  const std = (values: readonly number[]) => {
    const mean = values.reduce((a, b) => a + b, 0) / values.length;
    return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1));
  };

  it("scales the guided velocity of each item to the deviation of the positive one", async () => {
    const actual = await combined(0.7);
    assertItems(actual, (item) => {
      const [x, cond, uncond] = [wave(1), wave(2), wave(3)].map((tensor) => itemOf(tensor, item)) as [
        number[],
        number[],
        number[],
      ];
      // noise, signal and v of sigma 2, step by step as in the paper
      const root = Math.sqrt(5);
      const velocity = (clean: readonly number[]) => clean.map((value, i) => ((x[i]! / 5 - value) * root) / 2);
      const [positive, negative] = [velocity(cond), velocity(uncond)];
      const guided = negative.map((value, i) => value + 7 * (positive[i]! - value));
      const factor = (0.7 * std(positive)) / std(guided) + 0.3;
      return guided.map((value, i) => x[i]! / 5 - (value * factor * 2) / root);
    });
  });

  it("is plain guidance for a multiplier of 0, and for a cfg of 1", async () => {
    const plain = weightedSum([
      [7, wave(2)],
      [-6, wave(3)],
    ]);
    assertClose(await combined(0), plain, () => 2e-6);
    assertClose(await combined(1, { cfg: 1 }), wave(2), () => 1e-6);
  });

  it("stays finite if estimates have no deviation", async () => {
    const flat = Tensor.zeros([2, 2, 3, 3]);
    const actual = await combined(1, { x: flat, cond: flat, uncond: flat });
    assert.ok(actual.data.every((value) => value === 0));
  });
});

describe("PerpNeg", () => {
  const empty: Conditioning = [[Tensor.zeros([1, 77, 8]), {}]];
  const combined = async (neg_scale: number, others: object = {}): Promise<Tensor> => {
    const { guidance } = await guidanceOf("PerpNeg", { empty_conditioning: empty, neg_scale });
    const predict = async (conditioning: Conditioning) => {
      assert.equal(conditioning, empty);
      return wave(4);
    };
    return guidance.combine!(step({ predict, ...others })) as Promise<Tensor>;
  };

  it("leaves out of the negative side what lies along the positive one, item by item", async () => {
    assertItems(await combined(0.8), (item) => {
      const [cond, uncond, e] = [wave(2), wave(3), wave(4)].map((tensor) => itemOf(tensor, item)) as [
        number[],
        number[],
        number[],
      ];
      const [p, n] = [cond, uncond].map((side) => side.map((value, i) => value - e[i]!)) as [number[], number[]];
      const along = dot(n, p) / dot(p, p);
      return e.map((value, i) => value + 7 * (p[i]! - 0.8 * (n[i]! - along * p[i]!)));
    });
  });

  it("is the positive side alone if the negative one is a multiple of it", async () => {
    const negative = Tensor.from(
      wave(2).data.map((value, i) => 2 * value - wave(4).data[i]!),
      [2, 2, 3, 3],
    );
    assertClose(await combined(1, { uncond: negative, cfg: 1 }), wave(2), () => 2e-6);
    const same = await combined(1, { cond: wave(4), uncond: wave(4) });
    assertClose(same, wave(4), () => 2e-6);
  });

  it("shows the run which tensors the model holds", async () => {
    const { model, guidance } = await guidanceOf("PerpNeg", { empty_conditioning: empty, neg_scale: 1 });
    assert.deepEqual(guidance.conditioning, [empty]);
    assert.ok(measure([model]).buffers.includes(empty[0]![0].memory));
  });
});

describe("DifferentialDiffusion", () => {
  const levels = sigmas({ scheduler: "normal", steps: 10 });
  const grey = Tensor.from([0, 0.25, 0.5, 0.75, 1], [1, 1, 1, 5]);
  const maskOf = ({ guidance }: Model, sigma: number, all = levels) => [...guidance!.mask!(grey, sigma, all).data];

  it("opens grey parts when their share of the schedule is left", async () => {
    const { model } = await guidanceOf("DifferentialDiffusion", {});
    assert.deepEqual(maskOf(model, levels[0]!), [0, 0, 0, 0, 1]);
    // timesteps 999, 888 …: a quarter is left from 249.75 on
    const opened = [...levels.subarray(0, 10)].map((sigma) => maskOf(model, sigma).indexOf(1));
    assert.deepEqual(opened, [4, 4, 4, 3, 3, 2, 2, 1, 1, 0]);
    assert.deepEqual([...grey.data], [0, 0.25, 0.5, 0.75, 1]);
  });

  it("counts from the first to the last level of a schedule that does not end in 0", async () => {
    const { model } = await guidanceOf("DifferentialDiffusion", {});
    const part = levels.slice(2, 7);
    assert.deepEqual(maskOf(model, part[0]!, part), [0, 0, 0, 0, 1]);
    assert.deepEqual(maskOf(model, part[2]!, part), [0, 0, 1, 1, 1]);
    assert.deepEqual(maskOf(model, part[4]!, part), [1, 1, 1, 1, 1]);
    assert.deepEqual(maskOf(model, part[0]!, part.slice(0, 1)), [0, 0, 0, 0, 1]);
  });

  it("mixes with the mask itself by its strength", async () => {
    const { model } = await guidanceOf("DifferentialDiffusion", { strength: 0.5 });
    assert.deepEqual(maskOf(model, levels[0]!), [0, 0.125, 0.25, 0.375, 1]);
  });

  it("counts in the timesteps of the sampling that the model has in the end", async () => {
    const { model } = await guidanceOf("DifferentialDiffusion", {});
    const inputs = { model, sampling: "eps", zsnr: true };
    const { result } = await invokeNode("ModelSamplingDiscrete", inputs);
    const all = sigmas({ model: result[0].sampling, scheduler: "normal", steps: 10 });
    const opened = [...all.subarray(0, 10)].map((sigma) => maskOf(result[0], sigma, all).indexOf(1));
    assert.deepEqual(opened, [4, 4, 4, 3, 3, 2, 2, 1, 1, 0]);
  });
});

describe("Epsilon Scaling", () => {
  const changed = async (scaling_factor: number) =>
    (await guidanceOf("Epsilon Scaling", { scaling_factor })).guidance.after![0]!(wave(5), step());

  it("divides the noise that the estimate takes away", async () => {
    assertItems(await changed(1.25), (item) => {
      const [x, denoised] = [itemOf(wave(1), item), itemOf(wave(5), item)];
      return x.map((value, i) => value - (value - denoised[i]!) / 1.25);
    });
  });

  it("changes nothing for a factor of 1, and adds to what was there", async () => {
    assertSameBits(await changed(1), wave(5));
    const { model } = await guidanceOf("CFGZeroStar", {});
    const [both] = (await invokeNode("Epsilon Scaling", { model, scaling_factor: 1.1 })).result;
    assert.equal(both.guidance!.after!.length, 2);
    assert.equal(both.guidance!.after![0], model.guidance!.after![0]);
  });
});

describe("CFGZeroStar", () => {
  const changed = async (others: object = {}) => {
    const { guidance } = await guidanceOf("CFGZeroStar", {});
    return guidance.after![0]!(wave(5), step(others));
  };

  it("adds the negative side by what it lacks of the positive one, item by item", async () => {
    assertItems(await changed(), (item) => {
      const [x, cond, uncond, out] = [1, 2, 3, 5].map((from) => itemOf(wave(from), item)) as [
        number[],
        number[],
        number[],
        number[],
      ];
      const [p, n] = [cond, uncond].map((side) => side.map((value, i) => x[i]! - value)) as [number[], number[]];
      const alpha = dot(p, n) / (dot(n, n) + 1e-8);
      return out.map((value, i) => value + uncond[i]! * (alpha - 1) + 7 * uncond[i]! * (1 - alpha));
    });
  });

  it("changes nothing if both sides are equal or cfg is 1", async () => {
    assertClose(await changed({ uncond: wave(2) }), wave(5), () => 1e-6);
    assertClose(await changed({ cfg: 1 }), weightedSum([[1, wave(5)]]), () => 0);
  });
});

describe("CFGNorm", () => {
  const cells = (...values: [number, number][]) =>
    Tensor.from([...values.map(([a]) => a), ...values.map(([, b]) => b)], [1, 2, 1, values.length]);
  const changed = async (strength: number, denoised: Tensor, cond: Tensor) =>
    (await guidanceOf("CFGNorm", { strength })).guidance.after![0]!(denoised, step({ cond, x: denoised }));

  it("shortens cells that are longer than those of the positive side", async () => {
    const result = await changed(1, cells([6, 8], [0.3, 0.4], [0, 0]), cells([3, 4], [3, 4], [1, 1]));
    assertSameBits(result, cells([3, 4], [0.3, 0.4], [0, 0]));
  });

  it("refuses the norm before guidance", async () => {
    await refuses(guidanceOf("CFGNorm", { strength: 1, pre_cfg: true }), "value.invalid", /pre_cfg.*expected false/);
    await guidanceOf("CFGNorm", { strength: 1, pre_cfg: false });
  });

  it("multiplies all of them by its strength, in each item of a batch", async () => {
    const two = (tensor: Tensor) =>
      Tensor.from([...tensor.data, ...tensor.data.map((value) => 2 * value)], [2, 2, 1, 2]);
    const [denoised, cond] = [two(cells([6, 8], [0, 1])), two(cells([3, 4], [0, 4]))];
    const result = await changed(0.5, denoised, cond);
    assert.deepEqual([...result.data], [1.5, 0, 2, 0.5, 3, 0, 4, 1]);
  });
});

describe("RenormCFG", () => {
  const combined = async (inputs: object, others: object = {}): Promise<Tensor> =>
    (await guidanceOf("RenormCFG", { cfg_trunc: 100, renorm_cfg: 1, ...inputs })).guidance.combine!(
      step(others),
    ) as Promise<Tensor>;
  const plain = weightedSum([
    [7, wave(2)],
    [-6, wave(3)],
  ]);

  it("makes no item longer than the positive side times a factor", async () => {
    const length = (values: readonly number[]) => Math.sqrt(dot(values, values));
    assertItems(await combined({ renorm_cfg: 1.5 }), (item) => {
      const guided = itemOf(plain, item);
      const factor = Math.min(1, (1.5 * length(itemOf(wave(2), item))) / length(guided));
      return guided.map((value) => value * factor);
    });
    assertClose(await combined({ renorm_cfg: 100 }), plain, () => 0);
    assertClose(await combined({ renorm_cfg: 0 }), plain, () => 0);
  });

  it("is the positive side above a noise level", async () => {
    assertSameBits(await combined({ cfg_trunc: 2 }), wave(2));
    assertClose(await combined({ cfg_trunc: 2, renorm_cfg: 0 }, { sigma: 1.99 }), plain, () => 0);
  });

  it("stays finite if all is 0", async () => {
    const zeros = Tensor.zeros([2, 2, 3, 3]);
    assertSameBits(await combined({}, { cond: zeros, uncond: zeros }), zeros);
  });
});
