import assert from "node:assert/strict";
import { join } from "node:path";
import { invokeNode, Tensor } from "latentkit";
import { refuses } from "../../../helpers/errors.js";
import { goldenText } from "../../../helpers/golden-file.js";
import { FLUX_FOLDER } from "../../../helpers/models/golden-flux.js";
import { assertClose, assertSameBits } from "../../../helpers/tensor/bits.js";

describe("KarrasScheduler", () => {
  for (const [sigma_max, rho, code] of [
    [14.6, 0, "input.below-minimum"],
    [14.6, 0.01, "value.out-of-range"],
    [0.3, 0.01, "value.out-of-range"],
  ] as const) {
    it(`refuses a rho of ${rho} from ${sigma_max} on`, () =>
      refuses(
        invokeNode("KarrasScheduler", { steps: 3, sigma_max, sigma_min: 0.03, rho }),
        code,
        /^KarrasScheduler, input "rho": expected /,
      ));
  }
});

describe("VPScheduler", () => {
  it("names the input whose value makes sigmas infinite", async () => {
    const run = (beta_d: number, beta_min: number) =>
      invokeNode("VPScheduler", { steps: 4, beta_d, beta_min, eps_s: 0.001 });
    await refuses(run(5000, 0.1), "input.above-maximum", /input "beta_d": .* at most 88.*, received 5000\.$/);
    await refuses(run(19.9, 5000), "input.above-maximum", /input "beta_min": .* at most 88.*, received 5000\.$/);
  });
});

describe("AlignYourStepsScheduler", () => {
  const SDXL = [
    14.6146412293, 6.3184485287, 3.7681790315, 2.1811480769, 1.3405244945, 0.8620721141, 0.5550693289, 0.3798540708,
    0.2332364134, 0.1114188177, 0,
  ];

  async function run(model_type: string, steps: number, denoise: number): Promise<Tensor> {
    return (await invokeNode("AlignYourStepsScheduler", { model_type, steps, denoise })).result[0] as Tensor;
  }

  const near = (actual: Tensor, expected: number[]) =>
    assertClose(actual, Tensor.from(expected, [expected.length]), (x) => 3e-6 * x);

  it("has the published sigmas of 10 steps, with 0 in place of the last", async () => {
    near(await run("SDXL", 10, 1), SDXL);
    near(
      (await run("SVD", 10, 1)).reshape([11]),
      [700, 54.5, 15.886, 7.977, 4.248, 1.789, 0.981, 0.403, 0.173, 0.034, 0],
    );
  });

  it("interpolates logarithms for other numbers of steps", async () => {
    const twice = await run("SDXL", 20, 1);
    assert.equal(twice.size, 21);
    near(
      Tensor.from(
        twice.data.filter((_, i) => i % 2 === 0),
        [11],
      ),
      SDXL,
    );
    assert.ok(Math.abs(twice.data[1]! - Math.sqrt(SDXL[0]! * SDXL[1]!)) < 1e-5);
    near(await run("SD1", 1, 1), [14.6146412293, 0]);
  });

  it("has the last steps alone if denoise is below 1, rounded half to even", async () => {
    near(await run("SDXL", 10, 0.35), SDXL.slice(-5));
    assert.deepEqual((await run("SDXL", 10, 0)).shape, [0]);
    assert.deepEqual([...(await run("SDXL", 10, 0.01)).data], [0]);
  });
});

describe("Flux2Scheduler", () => {
  const { flux2_scheduler } = JSON.parse(goldenText(join(FLUX_FOLDER, "flux2.json"))) as {
    flux2_scheduler: readonly { steps: number; width: number; height: number; sigmas: number[] }[];
  };

  for (const { steps, width, height, sigmas } of flux2_scheduler) {
    it(`${steps} steps at ${width} x ${height}`, async () => {
      const { result } = await invokeNode("Flux2Scheduler", { steps, width, height });
      assertSameBits(result[0], Tensor.from(sigmas, [steps + 1]));
    });
  }

  it("ends at 0 if the shift is beyond float32", async () => {
    const { result } = await invokeNode("Flux2Scheduler", { steps: 3, width: 16384, height: 16384 });
    assertSameBits(result[0], Tensor.from([1, 1, 1, 0], [4]));
  });
});
