import assert from "node:assert/strict";
import { type Conditioning, Tensor } from "latentkit";
import { boundsOf, clipped, feathered, readArea, withSharedOptions } from "#src/host/sampling/conditioning.js";

describe("areas of conditioning", () => {
  it("are cells, or fractions that round half to even and are a cell at least", () => {
    assert.deepEqual(readArea([3, 4, 2, 1], 6, 10), { height: 3, width: 4, y: 2, x: 1 });
    const area = readArea(["percentage", 0.25, 0.25, 0.25, 0.75], 6, 10);
    assert.deepEqual(area, { height: 2, width: 2, y: 2, x: 8 });
    assert.deepEqual(readArea(["percentage", 0, 0.01, 0, 0], 6, 10), { height: 1, width: 1, y: 0, x: 0 });
    assert.equal(readArea(undefined, 6, 10), undefined);
  });

  it("are refused if they are not a list of four sides", () => {
    const bad = [5, "percentage", [1, 2, 3], [1, 2, 3, 4, 5], [1, 2, -1, 0], [1.5, 2, 0, 0], ["percentage", 1, 1, 1]];
    for (const value of [...bad, [1, 2, 0, Number.NaN], ["percentage", Infinity, 1, 0, 0], ["other", 1, 1, 0, 0], {}])
      assert.throws(() => readArea(value, 6, 10), { code: "value.invalid" }, JSON.stringify(value));
  });

  it("end with the latent, and are refused if they begin outside", () => {
    const area = { height: 100, width: 4, y: 2, x: 8 };
    assert.deepEqual(clipped(area, 6, 10), { height: 4, width: 2, y: 2, x: 8 });
    assert.deepEqual(clipped(undefined, 6, 10), { height: 6, width: 10, y: 0, x: 0 });
    assert.throws(() => clipped({ ...area, y: 6 }, 6, 10), { code: "value.out-of-range", message: /6 x 10/ });
    assert.throws(() => clipped({ ...area, height: 0 }, 6, 10), { code: "value.out-of-range" });
  });

  it("around a mask hold all that is not 0 in any of its planes, and 8 x 8 cells at least", () => {
    const mask = Tensor.zeros([2, 20, 24]);
    mask.data[3 * 24 + 5] = 0.1;
    mask.data[20 * 24 + 15 * 24 + 6] = -1;
    assert.deepEqual(boundsOf(mask), { height: 13, width: 8, y: 3, x: 5 });
    assert.deepEqual(boundsOf(Tensor.zeros([1, 4, 4])), { height: 8, width: 8, y: 0, x: 0 });
  });

  it("rise from their borders inside the latent over a quarter of a side, 8 cells at most", () => {
    const down = (height: number, y: number, rows: number) => [...feathered({ height, width: 1, y, x: 0 }, rows, 1)];
    assert.deepEqual(down(8, 1, 20), [0.5, 1, 1, 1, 1, 1, 1, 0.5]);
    assert.deepEqual(down(8, 0, 20), [1, 1, 1, 1, 1, 1, 1, 0.5]);
    assert.deepEqual(down(8, 12, 20), [0.5, 1, 1, 1, 1, 1, 1, 1]);
    assert.deepEqual(down(3, 1, 20), [1, 1, 1]);
    assert.deepEqual(
      down(40, 1, 50).slice(0, 9),
      [1, 2, 3, 4, 5, 6, 7, 8, 8].map((step) => step / 8),
    );
    const corner = feathered({ height: 8, width: 8, y: 1, x: 1 }, 20, 20);
    assert.deepEqual([corner[0], corner[1], corner[9]], [0.25, 0.5, 1]);
  });
});

describe("withSharedOptions", () => {
  const tokens = Tensor.zeros([1, 77, 8]);
  const entry = (options: Record<string, unknown>): Conditioning[number] => [tokens, options];
  const old = (control: object, others: object = {}) => entry({ control, control_apply_to_uncond: true, ...others });
  const [a, b] = [{ net: "a" }, { net: "b" }];
  const controls = (entries: Conditioning) => entries.map(([, { control }]) => control);

  it("gives controls to entries for the whole picture in turn, and leaves the others", () => {
    const negative = [entry({ area: [1, 1, 0, 0] }), entry({}), entry({ strength: 2 })];
    assert.deepEqual(controls(withSharedOptions([old(a), old(b)], negative)), [undefined, a, b]);
    assert.deepEqual(controls(withSharedOptions([old(a), entry({})], negative)), [undefined, a, undefined]);
    assert.deepEqual(controls(withSharedOptions([old(a), old(b)], [entry({})])), [b]);
    assert.deepEqual(controls(negative), [undefined, undefined, undefined]);
  });

  it("leaves a negative side with a control of its own, or nothing to share", () => {
    const own = [entry({ control: b }), entry({})];
    assert.equal(withSharedOptions([old(a)], own), own);
    const negative = [entry({})];
    const notShared = entry({ control: a, control_apply_to_uncond: false });
    for (const positive of [[notShared], [old(a, { area: [1, 1, 0, 0] })], []])
      assert.equal(withSharedOptions(positive, negative), negative);
    assert.deepEqual(withSharedOptions([old(a)], []), []);
  });

  it("shares boxes whatever else an entry says", () => {
    const gligen = { boxes: [] };
    const [[, options]] = withSharedOptions([entry({ gligen })], [entry({ strength: 1 })]) as [Conditioning[number]];
    assert.deepEqual(options, { strength: 1, gligen });
  });
});
