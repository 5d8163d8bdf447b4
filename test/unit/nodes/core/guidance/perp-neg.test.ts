import assert from "node:assert/strict";
import { type Conditioning, Tensor } from "latentkit";
import { measure } from "#src/graph/memory/footprint.js";
import { assertItems, dot, guidanceOf, itemOf, step, wave } from "../../../../helpers/graph/guidance.js";
import { assertClose } from "../../../../helpers/tensor/bits.js";

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

  it("is the positive side alone where the negative one is a multiple of it", async () => {
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
