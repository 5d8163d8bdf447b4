import assert from "node:assert/strict";
import { invokeNode, type Tensor } from "latentkit";
import { refuses } from "../../../helpers/errors.js";

describe("ExtendIntermediateSigmas", () => {
  it("refuses more sigmas than two million, which a chain of it would multiply at each", async () => {
    const sigmas = new Float32Array(20_001).fill(1);
    const inputs = { sigmas, steps: 100, start_at_sigma: -1, end_at_sigma: 0, spacing: "linear" };
    await refuses(invokeNode("ExtendIntermediateSigmas", inputs), "input.invalid", /sigmas.*at most 20000 sigmas/);
  });
});

describe("ManualSigmas", () => {
  const run = async (sigmas: string) => (await invokeNode("ManualSigmas", { sigmas })).result[0] as Tensor;

  it("reads numbers between commas, semicolons and white space", async () => {
    assert.deepEqual([...(await run("1, 0.5")).data], [1, 0.5]);
    assert.deepEqual([...(await run(" 14.5;2e0\n\t.25,,0 ")).data], [14.5, 2, 0.25, 0]);
    assert.deepEqual((await run("")).shape, [0]);
  });

  it("refuses words, numbers that are not finite or below 0, and more than 10001", async () => {
    for (const text of ["1, a", "1e999", "NaN", "Infinity", "1,5a", "1e39", "3, -1, 0"])
      await assert.rejects(run(text), {
        code: "input.invalid",
        message: /^ManualSigmas, input "sigmas": expected finite numbers from 0, received/,
      });
    assert.equal((await run("1 ".repeat(10_001))).size, 10_001);
    await assert.rejects(run("1 ".repeat(10_002)), { code: "input.invalid", message: /at most 10001 numbers/ });
  });
});
