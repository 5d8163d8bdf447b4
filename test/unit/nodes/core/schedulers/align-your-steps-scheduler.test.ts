import assert from "node:assert/strict";
import { invokeNode, Tensor } from "latentkit";
import { assertClose } from "../../../../helpers/tensor/bits.js";

const SDXL = [
  14.6146412293, 6.3184485287, 3.7681790315, 2.1811480769, 1.3405244945, 0.8620721141, 0.5550693289, 0.3798540708,
  0.2332364134, 0.1114188177, 0,
];

async function run(model_type: string, steps: number, denoise: number): Promise<Tensor> {
  return (await invokeNode("AlignYourStepsScheduler", { model_type, steps, denoise })).result[0] as Tensor;
}

const near = (actual: Tensor, expected: number[]) =>
  assertClose(actual, Tensor.from(expected, [expected.length]), (x) => 3e-6 * x);

describe("AlignYourStepsScheduler", () => {
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

  it("has the last steps alone where denoise is below 1, rounded half to even", async () => {
    near(await run("SDXL", 10, 0.35), SDXL.slice(-5));
    assert.deepEqual((await run("SDXL", 10, 0)).shape, [0]);
    assert.deepEqual([...(await run("SDXL", 10, 0.01)).data], [0]);
  });
});
