import assert from "node:assert/strict";
import { invokeNode } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";

const run = async (value: unknown) => (await invokeNode("PrimitiveInt", { value })).result[0];

describe("PrimitiveInt", () => {
  it("passes its value on, converted", async () => {
    for (const [value, expected] of [
      [7, 7],
      ["-3", -3],
      [2n ** 63n - 1n, 2n ** 63n - 1n],
    ] as [unknown, unknown][])
      assert.equal(await run(value), expected);
  });

  it("refuses values of other types", async () => {
    await refuses(run("1.5"), "input.wrong-type", /input "value"/);
  });
});
