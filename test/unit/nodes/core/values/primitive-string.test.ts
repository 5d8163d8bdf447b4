import assert from "node:assert/strict";
import { invokeNode } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";

const run = async (value: unknown) => (await invokeNode("PrimitiveString", { value })).result[0];

describe("PrimitiveString", () => {
  it("passes its value on, converted", async () => {
    for (const [value, expected] of [
      ["a b", "a b"],
      [7, "7"],
    ] as [unknown, unknown][])
      assert.equal(await run(value), expected);
  });

  it("refuses values of other types", async () => {
    await refuses(run({}), "input.wrong-type", /input "value"/);
  });
});
