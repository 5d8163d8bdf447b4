import assert from "node:assert/strict";
import { invokeNode } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";

const run = async (value: unknown) => (await invokeNode("PrimitiveBoolean", { value })).result[0];

describe("PrimitiveBoolean", () => {
  it("passes its value on, converted", async () => {
    for (const [value, expected] of [
      [true, true],
      ["false", false],
    ] as [unknown, unknown][])
      assert.equal(await run(value), expected);
  });

  it("refuses values of other types", async () => {
    await refuses(run("maybe"), "input.wrong-type", /input "value"/);
  });
});
