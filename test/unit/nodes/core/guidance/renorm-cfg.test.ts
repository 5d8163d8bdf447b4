import { Tensor } from "latentkit";
import { weightedSum } from "#src/tensor/ops.js";
import { assertItems, dot, guidanceOf, itemOf, step, wave } from "../../../../helpers/graph/guidance.js";
import { assertClose, assertSameBits } from "../../../../helpers/tensor/bits.js";

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

  it("stays finite where all is 0", async () => {
    const zeros = Tensor.zeros([2, 2, 3, 3]);
    assertSameBits(await combined({}, { cond: zeros, uncond: zeros }), zeros);
  });
});
