import assert from "node:assert/strict";
import { type Conditioning, modelSampling, sigmas, Tensor } from "latentkit";
import { readSides } from "#src/host/sampling/conditioning.js";
import { Estimator } from "#src/host/sampling/estimator.js";
import { analyticEntry, analyticModel } from "../../../helpers/sampling/analytic-model.js";
import { assertClose } from "../../../helpers/tensor/bits.js";

const sampling = modelSampling("sd15");
const SHAPE = [2, 4, 12, 16];
const x = Tensor.from(
  Array.from({ length: 2 * 4 * 12 * 16 }, (_, i) => Math.sin(i)),
  SHAPE,
);
const close = (actual: unknown, expected: Tensor, what: string) => assertClose(actual, expected, () => 1e-5, what);

const entriesOf = (sides: Conditioning[]) =>
  readSides(
    sides,
    sampling,
    [12, 16],
    sides.map((_, i) => i),
  );

/** Estimates of sides, in as many calls as `calls` counts. */
async function estimates(sides: Conditioning[], sigma = 2, skipped: number[] = []) {
  const { model, calls } = analyticModel(sampling);
  const result = await new Estimator(model, entriesOf(sides), SHAPE).estimate(x, sigma, skipped);
  return { result, calls };
}

/** The analytic estimate of the whole of x. */
async function whole(c: number, sigma = 2): Promise<Tensor> {
  return (await estimates([[analyticEntry(c)]], sigma)).result[0]!;
}

/** Cell by cell over all planes. */
const map = (value: (at: number, row: number, column: number, item: number) => number): Tensor =>
  Tensor.from(
    Array.from(x.data, (_, i) => value(i, Math.floor(i / 16) % 12, i % 16, Math.floor(i / (4 * 12 * 16)))),
    SHAPE,
  );

describe("estimates of sides of conditioning", () => {
  it("come from one call for all that is equally large, the last side first", async () => {
    const sides = [[analyticEntry(1), analyticEntry(2)], [analyticEntry(3)]];
    const { result, calls } = await estimates(sides);
    assert.deepEqual(
      calls.map(({ cond }) => cond),
      [[sides[1]![0], sides[0]![1], sides[0]![0]]],
    );
    const [one, two] = [await whole(1), await whole(2)];
    close(
      result[0],
      map((i) => (one.data[i]! + two.data[i]!) / 2),
      "mean of two",
    );
    close(result[1], await whole(3), "other side");
  });

  it("weigh entries by their strength, which does not change an entry alone", async () => {
    const weighed = [analyticEntry(1, { strength: 3 }), analyticEntry(2)];
    const { result } = await estimates([weighed, [analyticEntry(3, { strength: 0.2 })]]);
    const [one, two] = [await whole(1), await whole(2)];
    close(
      result[0],
      map((i) => (3 * one.data[i]! + two.data[i]!) / 4),
      "weighed",
    );
    close(result[1], await whole(3), "alone");
    close(
      (await estimates([[analyticEntry(1, { strength: 0 })]])).result[0],
      map(() => 0),
      "strength 0",
    );
  });

  it("are undefined of a side without entries, and of one that is skipped", async () => {
    const { result, calls } = await estimates([[], [analyticEntry(3)], [analyticEntry(1)]], 2, [1]);
    assert.deepEqual([result[0], result[1], calls.length, calls[0]!.cond.length], [undefined, undefined, 1, 1]);
  });

  it("are 0 if no area covers a cell, and give the other side the same area", async () => {
    const area = [3, 3, 2, 4];
    const { result, calls } = await estimates([[analyticEntry(1, { area })], [analyticEntry(3)]]);
    assert.deepEqual(
      calls.map(({ x: { shape }, cond }) => [shape[2], shape[3], cond.length]),
      [
        [3, 3, 2],
        [12, 16, 1],
      ],
    );
    const one = await whole(1);
    const isInside = (row: number, column: number) => row >= 2 && row < 5 && column >= 4 && column < 7;
    close(
      result[0],
      map((i, row, column) => (isInside(row, column) ? one.data[i]! : 0)),
      "area",
    );
    close(result[1], await whole(3), "other side");
  });

  it("weigh masks, of which a batch has its own or the first repeats", async () => {
    const planes = Tensor.from(
      Array.from({ length: 2 * 12 * 16 }, (_, i) => (i < 12 * 16 ? 1 : 3)),
      [2, 12, 16],
    );
    const entries = [analyticEntry(1, { mask: planes, mask_strength: 0.5 }), analyticEntry(2)];
    const [one, two] = [await whole(1), await whole(2)];
    const share = [0.5, 1.5];
    const { result } = await estimates([entries]);
    const weighed = map((i, _row, _column, item) => {
      return (share[item]! * one.data[i]! + two.data[i]!) / (share[item]! + 1);
    });
    close(result[0], weighed, "a mask for each latent");
    const half = Tensor.full([6, 8], 1);
    const { result: repeated } = await estimates([[analyticEntry(1, { mask: half }), analyticEntry(2)]]);
    close(
      repeated[0],
      map((i) => (one.data[i]! + two.data[i]!) / 2),
      "one smaller mask",
    );
  });

  it("leave out entries beyond their range, whose edges count", async () => {
    const { model, calls } = analyticModel(sampling);
    const half = sampling.sigma(999 * 0.5);
    const early = analyticEntry(1, { start_percent: 0, end_percent: 0.5 });
    const late = analyticEntry(2, { start_percent: 0.5, end_percent: 1 });
    const estimator = new Estimator(model, entriesOf([[early, late]]), SHAPE);
    for (const sigma of [14, half, 0.1, 14]) await estimator.estimate(x, sigma);
    assert.deepEqual(
      calls.map(({ cond }) => cond),
      [[early], [late, early], [late], [early]],
    );
  });

  it("count a border that a step of a flow hits on both sides", async () => {
    const flow = modelSampling("flux-schnell");
    for (const border of [0.1, 0.2, 0.3, 0.7]) {
      const before = analyticEntry(1, { start_percent: 0, end_percent: border });
      const after = analyticEntry(2, { start_percent: border, end_percent: 1 });
      const { model, calls } = analyticModel(flow);
      const entries = readSides([[before, after]], flow, [12, 16], [0]);
      const levels = sigmas({ model: "flux-schnell", scheduler: "simple", steps: 10 });
      await new Estimator(model, entries, SHAPE).estimate(x, levels[Math.round(10 * border)]!);
      assert.deepEqual(calls[0]!.cond, [after, before], String(border));
    }
  });

  it("tell a model the area of an entry that the other side has given", async () => {
    const area = [4, 8, 2, 3];
    const options = { area, strength: 2, mask_strength: 0.5 };
    const { calls } = await estimates([[analyticEntry(1, options)], [analyticEntry(3, { tag: "own" })]]);
    const given = calls
      .flatMap(({ cond }) => cond)
      .find(([, { area, tag }]) => area !== undefined && tag !== undefined);
    assert.deepEqual([given![1].area, given![1].strength, given![1].mask_strength], [area, 2, 0.5]);
    assert.equal(given![0].data[0], 3);
  });

  it("tell the sides apart if both have one entry", async () => {
    const shared = analyticEntry(1);
    const { calls } = await estimates([[shared], [shared]]);
    const [second, first] = calls[0]!.cond;
    assert.deepEqual(second, first);
    assert.ok(first === shared && second !== shared);
  });

  it("add up any number of entries", async () => {
    const entries = Array.from({ length: 20 }, (_, i) => analyticEntry(i / 10));
    const { result } = await estimates([entries]);
    close(result[0], await whole(0.95), "mean of 20");
  });

  it("come from calls of their own if a context cannot repeat to another's length", async () => {
    const { calls } = await estimates([
      [analyticEntry(1, {}, 2)],
      [analyticEntry(2, {}, 8)],
      [analyticEntry(3, {}, 10)],
    ]);
    assert.deepEqual(
      calls.map(({ cond }) => cond.length),
      [2, 1],
    );
    const control = {};
    const { calls: controlled } = await estimates([[analyticEntry(1, { control })], [analyticEntry(2)]]);
    assert.equal(controlled.length, 2);
  });

  it("are refused if the host's model returns no tensor of x's shape", async () => {
    for (const wrong of [undefined, Tensor.zeros([1]), 5]) {
      const model = { sampling, predict: async () => wrong as Tensor };
      await assert.rejects(new Estimator(model, entriesOf([[analyticEntry(1)]]), SHAPE).estimate(x, 1), {
        code: "tensor.bad-shape",
        message: /^Model sd15, predict: expected a tensor of shape \[2, 4, 12, 16\], received /,
      });
    }
  });

  it("refuse options of a wrong type", () => {
    for (const options of [{ strength: "1" }, { mask: 5 }, { start_percent: Number.NaN }, { area: 5 }])
      assert.throws(() => entriesOf([[analyticEntry(1, options)]]), {
        name: "LatentkitError",
        message: new RegExp(`^conditioning, ${Object.keys(options)[0]}: expected `),
      });
  });
});
