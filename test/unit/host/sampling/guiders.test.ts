import assert from "node:assert/strict";
import { modelSampling, Tensor } from "latentkit";
import { readSides } from "#src/host/sampling/conditioning.js";
import { DenoisingRun } from "#src/host/sampling/denoising-run.js";
import { type Guider, guidanceOf, perpendicular } from "#src/host/sampling/guiders.js";
import type { Guidance, GuidanceStep } from "#src/host/types.js";
import { analyticEntry, analyticModel } from "../../../helpers/sampling/analytic-model.js";
import { assertClose, assertSameBits } from "../../../helpers/tensor/bits.js";

const sampling = modelSampling("sd15");
const SHAPE = [1, 4, 2, 2];
const x = Tensor.from(
  Array.from({ length: 16 }, (_, i) => Math.cos(i)),
  SHAPE,
);
const sides = { positive: [analyticEntry(0.5)], negative: [analyticEntry(-0.5)] };

/** Denoises x once with a guider of a model that has this guidance. */
async function denoised(guider: Omit<Guider, "model">, guidance?: Guidance, mask?: Tensor) {
  const { model: plain, calls } = analyticModel(sampling, "gauss");
  const model = { ...plain, guidance };
  const method = guidanceOf({ ...guider, model } as Guider);
  const run = new DenoisingRun({
    model,
    method,
    sides: readSides(method.sides, sampling, [2, 2], method.areaOrder),
    sigmas: Float32Array.of(2, 1),
    shape: SHAPE,
    inpaint: mask && { mask, latent: Tensor.full(SHAPE, 7), noise: undefined },
    noise: () => assert.fail("no noise is drawn"),
  });
  return { both: await run.denoiseBoth(x, 2), result: await run.denoise(x, 2), calls };
}

const cfg = (factor: number) => ({ kind: "cfg", ...sides, cfg: factor }) as Omit<Guider, "model">;
const close = (actual: unknown, expected: Tensor, what: string) => assertClose(actual, expected, () => 1e-5, what);
const each = (a: Tensor, value: (a: number, i: number) => number) => Tensor.from(a.data.map(value), a.shape);

describe("guidance", () => {
  it("shares the controls of the positive side with every other side", async () => {
    const control = { control: { strength: 1 }, control_apply_to_uncond: true };
    const [positive, negative, other] = [[analyticEntry(1, control)], [analyticEntry(0)], [analyticEntry(2)]];
    const guiders = [
      { kind: "cfg", positive, negative, cfg: 3 },
      { kind: "dual-cfg", cond1: positive, cond2: other, negative, cfgConds: 3, cfgCond2Negative: 2, style: "regular" },
      { kind: "perp-neg", positive, negative, empty: other, cfg: 3, negScale: 1 },
    ];
    for (const guider of guiders) {
      const { calls } = await denoised(guider as Omit<Guider, "model">);
      const controls = calls.flatMap(({ cond }) => cond.map(([, options]) => options.control));
      assert.ok(controls.length >= 4 && controls.every((value) => value === control.control), guider.kind);
    }
  });

  it("evaluates the negative side at cfg 1 only for those that need it", async () => {
    const { both, result, calls } = await denoised(cfg(1));
    assert.deepEqual(
      calls.map(({ cond }) => cond.length),
      [2, 1],
    );
    close(both.denoised, result, "denoised");
    assert.notDeepEqual(both.uncond.data, result.data);
    assertSameBits(
      (await denoised({ kind: "basic", ...sides } as Omit<Guider, "model">)).both.uncond,
      Tensor.zeros(SHAPE),
    );
  });

  it("is replaced by the model's combine, which sees both sides and may ask for others", async () => {
    const seen: GuidanceStep[] = [];
    const combine = async (step: GuidanceStep) => {
      seen.push(step);
      return step.predict([analyticEntry(4)], step.x);
    };
    const { both, calls } = await denoised(cfg(3), { combine });
    const { result: expected } = await denoised({ kind: "basic", positive: [analyticEntry(4)] } as Omit<
      Guider,
      "model"
    >);
    close(both.denoised, expected, "another conditioning");
    assert.equal(calls.length, 4);
    const [{ cfg: factor, sigma, uncond }] = seen as [GuidanceStep];
    assert.deepEqual([factor, sigma], [3, 2]);
    assertSameBits(uncond, both.uncond);
  });

  it("is changed by the functions after it, in order", async () => {
    const add = (value: number) => (estimate: Tensor) => each(estimate, (a) => a + value);
    const double = (estimate: Tensor) => each(estimate, (a) => 2 * a);
    const { result } = await denoised(cfg(3));
    close(
      (await denoised(cfg(3), { after: [add(1), double] })).result,
      each(result, (a) => 2 * (a + 1)),
      "in order",
    );
  });

  it("is refused if a function of the model returns no estimate", async () => {
    const wrong = (() => 5) as never;
    for (const guidance of [{ combine: wrong }, { after: [wrong] }])
      await assert.rejects(denoised(cfg(3), guidance), { code: "tensor.bad-shape", message: /^guidance: expected / });
  });

  it("has zeros for the negative side if it is not evaluated", async () => {
    const combine = ({ uncond }: GuidanceStep) => uncond;
    assertSameBits((await denoised(cfg(1), { combine })).result, Tensor.zeros(SHAPE));
  });

  it("estimates within a mask, which the model may change at each noise level", async () => {
    const mask = Tensor.from([1, 0, 0.5, 1], [1, 2, 2]);
    const levels: unknown[] = [];
    const change = (own: Tensor, sigma: number, sigmas: Float32Array) => {
      levels.push([own, sigma, ...sigmas]);
      return Tensor.zeros([1, 2, 2]);
    };
    assertSameBits((await denoised(cfg(3), { mask: change }, mask)).result, Tensor.full(SHAPE, 7));
    assert.deepEqual(levels, [
      [mask, 2, 2, 1],
      [mask, 2, 2, 1],
    ]);
    const { result, calls } = await denoised(cfg(1), undefined, mask);
    // outside, the model sees the latent, and the estimate is the latent
    assert.deepEqual([calls[1]!.x.data[1], result.data[1]], [7, 7]);
    assert.equal(calls[1]!.x.data[0], x.data[0]);
    assert.equal(calls[1]!.x.data[2], Math.fround(0.5 * x.data[2]! + 3.5));
  });

  it("of two conditionings asks for the sides that its factors need", async () => {
    const dual = (style: string, first: number, second: number) =>
      denoised({
        kind: "dual-cfg",
        cond1: sides.positive,
        cond2: [analyticEntry(0.1)],
        negative: sides.negative,
        cfgConds: first,
        cfgCond2Negative: second,
        style,
      } as Omit<Guider, "model">);
    const counts = async (style: string, first: number, second: number) =>
      (await dual(style, first, second)).calls.map(({ cond }) => cond.length);
    // both sides are evaluated first, then those that are needed
    assert.deepEqual(await counts("regular", 1, 1), [3, 1]);
    assert.deepEqual(await counts("regular", 2, 1), [3, 2]);
    assert.deepEqual(await counts("regular", 1, 2), [3, 3]);
    assert.deepEqual(await counts("nested", 1, 1), [3, 3]);
    const [one, none] = [(await denoised(cfg(1))).result, (await dual("nested", 1, 1)).result];
    close(none, one, "nested at 1");
    close((await dual("regular", 1, 1)).result, one, "regular at 1");
  });
});

describe("Perp-Neg guidance", () => {
  const of = (...values: number[]) => Tensor.from(values, [1, 1, 1, values.length]);
  const empty = of(1, 1);

  it("moves along the positive side, and away from what is perpendicular to it", () => {
    const sides = { positive: of(3, 1), negative: of(6, 5), empty };
    assertSameBits(perpendicular(sides, 2, 0.5), of(1 + 2 * 2, 1 - 2 * 0.5 * 4));
  });

  it("takes each latent of a batch for itself", () => {
    const two = (a: Tensor, b: Tensor) => Tensor.from([...a.data, ...b.data], [2, 1, 1, 2]);
    const [a, b] = [
      { positive: of(3, 1), negative: of(6, 5) },
      { positive: of(1, 2), negative: of(0, 7) },
    ];
    const both = {
      positive: two(a.positive, b.positive),
      negative: two(a.negative, b.negative),
      empty: two(empty, empty),
    };
    const expected = [a, b].map((sides) => perpendicular({ ...sides, empty }, 3, 1)) as [Tensor, Tensor];
    assertSameBits(perpendicular(both, 3, 1), two(...expected));
  });

  it("leaves the negative side whole if the positive one is empty", () => {
    assertSameBits(perpendicular({ positive: empty, negative: of(2, 3), empty }, 2, 1), of(-1, -3));
  });

  it("evaluates positive, negative and empty in one call, and is changed by the model's functions", async () => {
    const guider = { kind: "perp-neg", ...sides, empty: [analyticEntry(0)], cfg: 3, negScale: 1 } as Omit<
      Guider,
      "model"
    >;
    const { result, both, calls } = await denoised(guider);
    assert.deepEqual(
      calls.map(({ cond }) => cond.length),
      [3, 3],
    );
    // the golden denoiser moves all cells equally: nothing is perpendicular
    const { result: plain } = await denoised({ kind: "cfg", ...sides, negative: [analyticEntry(0)], cfg: 3 } as Omit<
      Guider,
      "model"
    >);
    close(result, plain, "plain guidance");
    close(both.uncond, (await denoised(cfg(3))).both.uncond, "negative side");
    const changed = await denoised(guider, { after: [(estimate) => each(estimate, (a) => -a)] });
    close(
      changed.result,
      each(result, (a) => -a),
      "changed",
    );
  });
});
