import assert from "node:assert/strict";
import { uniforms } from "#src/tensor/uniform.js";

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
