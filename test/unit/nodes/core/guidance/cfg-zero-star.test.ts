import { weightedSum } from "#src/tensor/ops.js";
import { assertItems, dot, guidanceOf, itemOf, step, wave } from "../../../../helpers/graph/guidance.js";
import { assertClose } from "../../../../helpers/tensor/bits.js";

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

  it("changes nothing where both sides are equal or cfg is 1", async () => {
    assertClose(await changed({ uncond: wave(2) }), wave(5), () => 1e-6);
    assertClose(await changed({ cfg: 1 }), weightedSum([[1, wave(5)]]), () => 0);
  });
});
