import assert from "node:assert/strict";
import { invokeNode, Tensor } from "latentkit";
import { NumberLiteral, parseJson } from "#src/io/json/lossless.js";
import { goldenJson } from "../../../helpers/tensor/golden.js";

interface Case {
  id: string;
  anything_json?: string;
  v1: { ui: { text: unknown[] }; result: unknown[] };
  workflow_after?: unknown;
}

const KEY = "ext showAnythingLazy";

/** No counterpart here: Python's own types. "tuple" is a list here, "tensor" and "dict_tensor" have tests below. */
const PYTHON_ONLY = new Set(["tuple", "tensor", "dict_tensor", "bytes", "set"]);

describe("ext showAnythingLazy", () => {
  describe("golden", () => {
    for (const one of goldenJson<{ cases: Case[] }>("show_anything_lazy").cases) {
      if (PYTHON_ONLY.has(one.id)) continue;
      it(one.id, async () => {
        const anything =
          one.anything_json === undefined ? undefined : parseJson(one.anything_json, { nonFinite: true });
        const before = structuredClone(anything);
        const extra_pnginfo =
          one.workflow_after === undefined ? undefined : { workflow: { nodes: [{ id: 5 }, { id: 6 }] } };
        const { result, ui } = await invokeNode(KEY, { anything }, { hidden: { unique_id: "5", extra_pnginfo } });
        assert.deepEqual(result, one.v1.result);
        assert.deepEqual(ui, one.v1.ui);
        assert.deepEqual(extra_pnginfo, one.workflow_after);
        // decision: the input list is not mutated
        assert.deepEqual(structuredClone(anything), before);
      });
    }
  });

  const text = async (...anything: unknown[]) => (await invokeNode(KEY, { anything })).ui!.text;

  it("names tensors by shape", async () => {
    assert.deepEqual(await text(Tensor.zeros([2, 2])), ["Tensor [2,2] float32"]);
    assert.deepEqual(await text({ samples: Tensor.zeros([1, 4, 8, 8]) }), [
      '{\n    "samples": "Tensor [1,4,8,8] float32"\n}',
    ]);
  });

  it("shows numbers as Python prints them", async () => {
    assert.deepEqual(await text(1, 2.5, -0, 1e-7, 1e16, Number.NEGATIVE_INFINITY, 2n ** 64n, true), [
      "1",
      "2.5",
      "-0.0",
      "1e-07",
      "1e+16",
      "-inf",
      "18446744073709551616",
      "True",
    ]);
    assert.deepEqual(await text(parseJson('{"b": 1.0, "10": 1, "9": -Infinity}', { nonFinite: true })), [
      '{\n    "b": 1.0,\n    "10": 1,\n    "9": -Infinity\n}',
    ]);
    assert.deepEqual((await invokeNode(KEY, { anything: [new NumberLiteral("7.0")] })).result, ["7.0"]);
  });

  it("takes a value that is no list as a list of one", async () => {
    assert.deepEqual((await invokeNode(KEY, { anything: "a" })).result, ["a"]);
  });

  it("shows what JSON cannot hold in words", async () => {
    const loop: Record<string, unknown> = { run: () => 1, bytes: new Uint8Array(3) };
    loop.self = loop;
    assert.deepEqual(await text(loop), [
      '{\n    "run": "a function",\n    "bytes": "Uint8Array [3 bytes]",\n    "self": "..."\n}',
    ]);
  });

  it("hands out a list of its own", async () => {
    const list = [1, 2];
    const { result, ui } = await invokeNode(KEY, { anything: [list] });
    (result[0] as unknown[]).push(3);
    assert.deepEqual(
      [list, ui!.text],
      [
        [1, 2],
        [1, 2],
      ],
    );
  });
});
