import assert from "node:assert/strict";
import { invokeNode, type Latent, modelSampling, randn, Tensor } from "latentkit";
import { assertClose, assertSameBits } from "../../../../helpers/tensor/bits.js";

describe("AddNoise", () => {
  const add = async (sigmas: number[], noise: object, latent_image: object) => {
    const model = { sampling: modelSampling("sd15") };
    return (await invokeNode("AddNoise", { model, noise, sigmas, latent_image })).result[0] as Latent;
  };
  const shape = [1, 4, 2, 2];

  it("adds noise of the distance between the first and the last sigma", async () => {
    const latent = { samples: Tensor.full(shape, 0.5) };
    const noise = randn(shape, { seed: 5 });
    for (const [sigmas, strength] of [
      [[3, 2, 1], 2],
      [[3], 3],
      [[1, 3], 2],
    ] as const) {
      const { samples } = await add([...sigmas], { seed: 5n, enabled: true }, latent);
      const expected = Tensor.from(
        noise.data.map((value) => 0.5 + (value * strength) / 0.18215),
        shape,
      );
      assertClose(samples, expected, (x) => 1e-6 * Math.max(1, Math.abs(x)), `sigmas ${sigmas.join()}`);
    }
  });

  it("returns the latent itself without sigmas", async () => {
    const latent = { samples: Tensor.full(shape, 0.5) };
    assert.equal(await add([], { seed: 5n, enabled: true }, latent), latent);
  });

  it("makes 0 of what is not finite", async () => {
    const samples = Tensor.from([Number.NaN, Infinity, -Infinity, 1], [1, 4, 1, 1]);
    const { samples: added } = await add([1], { seed: 5n, enabled: false }, { samples });
    assertSameBits(added, Tensor.from([0, 0, 0, 1], [1, 4, 1, 1]));
  });
});
