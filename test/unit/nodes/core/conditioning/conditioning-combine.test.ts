import assert from "node:assert/strict";
import { type Conditioning, invokeNode, Tensor } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";

const KEY = "ConditioningCombine";
const entries = (count: number): Conditioning => Array.from({ length: count }, () => [Tensor.zeros([1, 1, 1]), {}]);

describe(KEY, () => {
  it("refuses more entries than 4096, which a chain of it would double at each", async () => {
    const { result } = await invokeNode(KEY, { conditioning_1: entries(2048), conditioning_2: entries(2048) });
    assert.equal((result[0] as Conditioning).length, 4096);
    const more = { conditioning_1: entries(2048), conditioning_2: entries(2049) };
    await refuses(invokeNode(KEY, more), "input.invalid", /conditioning_2.*at most 4096 entries/);
  });
});
