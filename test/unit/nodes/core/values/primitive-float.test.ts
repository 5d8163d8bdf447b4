import assert from "node:assert/strict";
import { invokeNode } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";

const run = async (value: unknown) => (await invokeNode("PrimitiveFloat", { value })).result[0];

describe("PrimitiveFloat", () => {
  it("passes its value on, converted", async () => {
    for (const [value, expected] of [
      [0.1, 0.1],
      ["-2.5", -2.5],
      [3n, 3],
    ] as [unknown, unknown][])
      assert.equal(await run(value), expected);
  });

  it("refuses values of other types", async () => {
    await refuses(run("a"), "input.wrong-type", /input "value"/);
  });
});
