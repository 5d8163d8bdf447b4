import assert from "node:assert/strict";
import { type Conditioning, Tensor } from "latentkit";
import { withSharedOptions } from "#src/host/sampling/shared-options.js";

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
