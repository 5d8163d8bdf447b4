import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { brownianNoise } from "#src/host/sampling/noise.js";
import { assertSameBits } from "../../../helpers/tensor/bits.js";
import { golden } from "../../../helpers/tensor/golden.js";

interface Case {
  id: string;
  seed: string;
  shape: number[];
  sigma_min: number;
  sigma_max: number;
  pairs: [number, number][];
}

const { cases, tensor } = golden<Case>("brownian");

describe("brownian, golden", () => {
  it("has torchsde's bits in 80 of 80 cases", () => {
    assert.equal(cases.length, 80);
    for (const { id, seed, shape, sigma_min, sigma_max, pairs } of cases) {
      const noise = brownianNoise(BigInt(seed), { min: sigma_min, max: sigma_max }, shape);
      const draws = pairs.flatMap(([sigma, next]) => [...noise(sigma, next).data]);
      assertSameBits(Tensor.from(draws, [pairs.length, ...shape]), tensor(id), id);
    }
  });
});
