import assert from "node:assert/strict";
import { type Conditioning, invokeNode, Tensor } from "latentkit";

describe("ControlNetApply", () => {
  const tokens = Tensor.zeros([1, 77, 8]);
  const image = Tensor.full([1, 16, 16, 3], 0.5);
  const apply = async (conditioning: Conditioning, control_net: object, strength: number) =>
    (await invokeNode("ControlNetApply", { conditioning, control_net, image, strength })).result[0];

  it("adds its control to each entry, for the negative side too", async () => {
    const net = {};
    const entries: Conditioning = [
      [tokens, { strength: 0.5 }],
      [tokens, {}],
    ];
    const [first, second] = await apply(entries, net, 0.75);
    const control = { net, hint: image, strength: 0.75, start: 0, end: 1, previous: undefined };
    assert.deepEqual(first, [tokens, { strength: 0.5, control, control_apply_to_uncond: true }]);
    const { control: own } = first![1] as { control: { net: object; hint: Tensor } };
    assert.equal(own.net, net);
    assert.equal(own.hint, image);
    assert.equal(second![1].control, own, "one object, so that one call evaluates both");
    assert.deepEqual(entries[1]![1], {});
  });

  it("keeps the control of an entry as the one before", async () => {
    const [one, two] = [{ a: 1 }, { b: 2 }];
    const before = await apply([[tokens, {}]], one, 1);
    const [entry] = await apply([...before, [tokens, {}]], two, 0.5);
    const { net, previous } = entry![1].control as { net: object; previous: object };
    assert.equal(net, two);
    assert.equal(previous, before[0]![1].control);
  });

  it("returns the conditioning itself where the strength is 0", async () => {
    const entries: Conditioning = [[tokens, {}]];
    assert.equal(await apply(entries, {}, 0), entries);
  });
});
