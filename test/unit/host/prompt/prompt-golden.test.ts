import assert from "node:assert/strict";
import { encodePrompt, LatentkitError, parsePrompt, Tensor, tokenizePrompt } from "latentkit";
import { fakeClip } from "../../../helpers/graph/fake-clip.js";
import { golden, nonFinite, type StoredTensor } from "../../../helpers/tensor/golden.js";

type Item = [id: number, weight: number | string, word: number];

interface Case {
  id: string;
  kind: "parse" | "normalize" | "encode";
  text: string;
  clip: "l" | "xl";
  token_weights: [string, number | string][];
  tokenized: { items: Item[]; total: number }[];
  token_normalization: string;
  weight_interpretation: string;
  w_max?: number;
  apply_to_pooled?: string;
  a1111_prompt_style?: boolean;
  weights: string;
  word_ids: number[][] | null;
  conditioning?: { cond: string; shape: number[]; extra: Record<string, string | number> }[];
  error?: string;
}

/** Cases on which the reference fails by accident; ours are typed errors. */
const REFUSED = new Set(["fixed_attention", "special11_l"]);
/** The reference needs another pack for this style; ours has it. */
const OURS = new Set(["a1111_style_without_smz"]);

const { cases, raw } = golden<Case>("prompt_encode");
const { encoders } = fakeClip("l");

const run: Record<Case["kind"], (one: Case) => void | Promise<void>> = {
  parse: ({ text, token_weights, tokenized }) => {
    const expected = token_weights.map(([segment, weight]) => [segment, nonFinite(weight)]);
    assert.deepEqual(parsePrompt(text), expected);
    const chunks = tokenizePrompt(text, encoders[0]!);
    assert.equal(chunks.length, tokenized.length);
    for (const [c, { items, total }] of tokenized.entries()) {
      assert.equal(chunks[c]!.length, total);
      for (const [j, [id, weight, word]] of items.entries()) {
        assert.deepEqual(chunks[c]![j], { id, weight: nonFinite(weight), word }, `chunk ${c}, place ${j}`);
      }
      for (const token of chunks[c]!.slice(items.length)) assert.deepEqual(token, { id: 49407, weight: 1, word: 0 });
    }
  },

  normalize: ({ text, token_normalization, weights, word_ids }) => {
    const chunks = tokenizePrompt(text, encoders[0]!, { tokenNormalization: token_normalization });
    const expected = raw(weights);
    assert.deepEqual([chunks.length, 77], expected.shape);
    for (const [i, token] of chunks.flat().entries()) {
      assert.ok(Math.abs(token.weight - expected.data[i]!) <= 1e-12, `weight ${i}: ${token.weight}`);
    }
    if (word_ids !== null)
      assert.deepEqual(
        chunks.map((chunk) => chunk.map(({ word }) => word)),
        word_ids,
      );
  },

  encode: async (one) => {
    const encoded = encodePrompt(fakeClip(one.clip), one.text, {
      tokenNormalization: one.token_normalization,
      weightInterpretation: one.weight_interpretation,
      wMax: one.w_max,
      applyToPooled: one.apply_to_pooled === undefined ? undefined : one.apply_to_pooled === "enable",
      a1111PromptStyle: one.a1111_prompt_style,
    });
    if (REFUSED.has(one.id)) {
      await assert.rejects(encoded, (error) => error instanceof LatentkitError && error.code === "value.invalid");
      return;
    }
    if (OURS.has(one.id)) {
      assert.deepEqual((await encoded)[0]?.[0].shape, [1, 77, 8]);
      return;
    }
    const conditioning = await encoded;
    assert.equal(conditioning.length, one.conditioning?.length);
    for (const [i, { cond, shape, extra }] of one.conditioning!.entries()) {
      const [ours, options] = conditioning[i]!;
      assert.deepEqual(ours.shape, shape);
      assertClose(ours, raw(cond), `entry ${i}`);
      assert.deepEqual(Object.keys(options).sort(), Object.keys(extra).sort());
      for (const [key, value] of Object.entries(extra)) {
        const own = options[key];
        if (typeof value === "string") assertClose(own as Tensor, raw(value), `entry ${i}, ${key}`);
        else assert.equal(own, value, key);
      }
    }
  },
};

function assertClose(actual: Tensor, expected: StoredTensor, what: string): void {
  assert.ok(actual instanceof Tensor, `${what} is not a tensor`);
  assert.deepEqual(actual.shape, expected.shape);
  for (const [i, value] of expected.data.entries()) {
    const error = Math.abs(actual.data[i]! - value);
    assert.ok(error <= 1e-5 * Math.max(1, Math.abs(value)), `${what}, value ${i}: ${actual.data[i]}, not ${value}`);
  }
}

describe("prompts against the reference", () => {
  it("has all cases", () => assert.equal(cases.length, 202));
  for (const one of cases) it(`${one.kind} ${one.id}`, () => run[one.kind](one));
});
