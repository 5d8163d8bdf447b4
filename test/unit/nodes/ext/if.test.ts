import assert from "node:assert/strict";
import { invokeNode, registry, Tensor } from "latentkit";
import { parseJson } from "#src/io/json/lossless.js";
import { refuses } from "../../../helpers/errors.js";
import { goldenJson, nonFinite } from "../../../helpers/tensor/golden.js";

interface Case {
  id: string;
  any_json?: string;
  any_type?: string;
  any_shape?: number[];
  any_values?: unknown[] | null;
  result?: string;
  error?: string;
}

const KEY = "ext if";

describe("ext if", () => {
  describe("golden", () => {
    // Python-only values have no counterpart; a missing branch is an error here also where the reference carries on
    const cases = goldenJson<{ cases: Case[] }>("if").cases.filter(({ any_type }) => any_type !== undefined);
    for (const one of cases) {
      it(one.id, async () => {
        const given = { any: conditionOf(one), if: "IF", else: "ELSE" };
        if (one.error !== undefined) await refuses(invokeNode(KEY, given), "input.invalid", /ambiguous/);
        else assert.deepEqual((await invokeNode(KEY, given)).result, [one.result]);
      });
    }

    it("asks for both branches", async () => {
      await refuses(invokeNode(KEY, { any: true, if: 2 }), "input.missing", /"else"/);
      await refuses(invokeNode(KEY, { any: false, if: 2 }), "input.missing", /"else"/);
    });
  });

  it("takes null as a branch", async () => {
    assert.deepEqual((await invokeNode(KEY, { any: 1, if: null, else: 2 })).result, [null]);
  });

  it("follows Python where JavaScript differs", async () => {
    const truth = async (any: unknown) => (await invokeNode(KEY, { any, if: true, else: false })).result[0];
    for (const value of [Number.NaN, "0", " ", [0], [[]], { a: null }, 1n, new Map([[1, 2]]), new Date(0)]) {
      assert.equal(await truth(value), true);
    }
    for (const value of [0n, -0, "", [], {}, Object.create(null), new Map(), new Float32Array(1)]) {
      assert.equal(await truth(value), false);
    }
    assert.equal(await truth(parseJson("0.0")), false);
    assert.equal(await truth(parseJson("0.10")), true);
  });

  it("has lazy branches and asks for the chosen one only", async () => {
    const node = registry.get(KEY)!;
    assert.deepEqual([node.inputs.any!.lazy, node.inputs.if!.lazy, node.inputs.else!.lazy], [false, true, true]);
    assert.deepEqual(await node.checkLazy!({ any: [] }), ["else"]);
    assert.deepEqual(await node.checkLazy!({ any: [1] }), ["if"]);
    assert.deepEqual(await node.checkLazy!({ any: [1], if: 5 }), []);
  });
});

function conditionOf({ id, any_json, any_type, any_shape, any_values }: Case): unknown {
  if (any_json !== undefined) return parseJson(any_json, { nonFinite: true });
  if (any_type === "dict") return { samples: Tensor.zeros([1, 4, 8, 8]) };
  const shape = any_shape ?? [];
  const size = shape.reduce((product, side) => product * side, 1);
  const values = (any_values ?? []).map(nonFinite);
  assert.ok(values.length <= size, id);
  return Tensor.from(
    Array.from({ length: size }, (_, i) => values[i] ?? 1),
    shape,
  );
}
