import assert from "node:assert/strict";
import { type Conditioning, invokeNode, Tensor } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";

const conditioning: Conditioning = [
  [Tensor.zeros([1, 77, 4]), { a: 1 }],
  [Tensor.zeros([1, 77, 4]), { guidance: 9 }],
];

describe("FluxGuidance", () => {
  it("sets the strength of every entry", async () => {
    const { result } = await invokeNode("FluxGuidance", { conditioning, guidance: 2.5 });
    assert.deepEqual(
      (result[0] as Conditioning).map(([, options]) => options),
      [{ a: 1, guidance: 2.5 }, { guidance: 2.5 }],
    );
    assert.equal((result[0] as Conditioning)[0]![0], conditioning[0]![0]);
  });

  it("refuses a strength below 0", async () => {
    await refuses(invokeNode("FluxGuidance", { conditioning, guidance: -1 }), "input.below-minimum", /guidance/);
  });
});
