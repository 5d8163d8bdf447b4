import assert from "node:assert/strict";
import { invokeNode } from "latentkit";

describe("StringConcatenate", () => {
  it("joins two texts by a third", async () => {
    const inputs = { string_a: "a fox", string_b: "in snow", delimiter: ", " };
    assert.deepEqual((await invokeNode("StringConcatenate", inputs)).result, ["a fox, in snow"]);
  });
});
