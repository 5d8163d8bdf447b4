import assert from "node:assert/strict";
import { t5Tokens } from "#src/host/checkpoint/t5-tokens.js";
import { fluxLayers } from "../../../helpers/models/golden-flux.js";

interface Encoded {
  readonly prompt: string;
  readonly t5_tokens: readonly (readonly [id: number, weight: number])[];
}

describe("t5Tokens", () => {
  it("splits prompts into the reference's tokens with their weights", () => {
    const vectors: readonly Encoded[] = fluxLayers().encode;
    assert.equal(vectors.length, 4);
    for (const { prompt, t5_tokens } of vectors) {
      const { ids, weights } = t5Tokens(prompt, 256);
      assert.deepEqual(
        ids.map((id, i) => [id, weights[i]]),
        t5_tokens,
      );
    }
  });

  it("splits each segment by itself, and fills no more than asked for", () => {
    assert.deepEqual(t5Tokens("a (b:1.5)c", 1), { ids: [3, 9, 3, 115, 3, 75, 1], weights: [1, 1, 1.5, 1.5, 1, 1, 1] });
    assert.deepEqual(t5Tokens("", 2), { ids: [1, 0], weights: [1, 1] });
  });
});
