import assert from "node:assert/strict";
import { invokeNode, registry, Tensor } from "latentkit";
import { NumberLiteral, parseJson } from "#src/io/json/lossless.js";
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
    // Python-only values have no counterpart; a missing branch is an error here even if the reference carries on
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

interface Workflow {
  workflow?: { nodes?: { id: unknown; widgets_values: unknown[] }[] };
}

interface SpentCase {
  id: string;
  pipe: { loader_settings?: { spent_time?: unknown } };
  unique_id: string | number | null;
  extra_pnginfo: Workflow | null;
  extra_pnginfo_after?: Workflow | null;
}

describe("ext showSpentTime", () => {
  describe("golden", () => {
    for (const one of goldenJson<{ cases: SpentCase[] }>("show_spent_time").cases) {
      it(one.id, async () => {
        const { unique_id, extra_pnginfo } = one;
        const result = await invokeNode(
          "ext showSpentTime",
          { pipe: one.pipe },
          { hidden: { unique_id, extra_pnginfo } },
        );
        // decision: the text is spent_time or "" also if no workflow node matches
        const settings = one.pipe.loader_settings ?? {};
        const text = "spent_time" in settings ? settings.spent_time : "";
        assert.deepEqual(result, { result: [], ui: { text: [text] } });
        assert.deepEqual(extra_pnginfo, after(one, text));
      });
    }

    function after(one: SpentCase, text: unknown): Workflow | null | undefined {
      const nodes = one.extra_pnginfo?.workflow?.nodes;
      // decision: a number as id matches its text, and a pipe without settings is not an error
      const ours = ["int_uid", "no_loader_settings", "no_nodes"].includes(one.id);
      if (!ours) return one.extra_pnginfo_after;
      if (one.id === "no_nodes") return { workflow: {} };
      assert.equal(nodes!.length > 0, true);
      return {
        workflow: {
          nodes: nodes!.map((node) => (String(node.id) === "7" ? { ...node, widgets_values: [text] } : node)),
        },
      };
    }
  });

  it("shows nothing for a pipe without settings", async () => {
    assert.deepEqual((await invokeNode("ext showSpentTime", { pipe: {} })).ui, { text: [""] });
    assert.deepEqual((await invokeNode("ext showSpentTime", { pipe: { loader_settings: {} } })).ui, { text: [""] });
  });

  it("changes the first node of that id only, and takes a workflow as JSON text", async () => {
    const nodes = [{ id: 1 }, { id: "2" }, { id: 2 }, null, 5];
    const extra_pnginfo = { workflow: { nodes } };
    const pipe = { loader_settings: { spent_time: "1 s" } };
    await invokeNode("ext showSpentTime", { pipe }, { hidden: { unique_id: 2, extra_pnginfo } });
    assert.deepEqual(nodes, [{ id: 1 }, { id: "2", widgets_values: ["1 s"] }, { id: 2 }, null, 5]);
    const hidden = { unique_id: "2", extra_pnginfo: JSON.stringify(extra_pnginfo) };
    assert.deepEqual((await invokeNode("ext showSpentTime", { pipe }, { hidden })).ui, { text: ["1 s"] });
  });

  it("leaves a frozen workflow as it is", async () => {
    const extra_pnginfo = { workflow: { nodes: [Object.freeze({ id: 2 })] } };
    const pipe = { loader_settings: { spent_time: "1 s" } };
    await invokeNode("ext showSpentTime", { pipe }, { hidden: { unique_id: "2", extra_pnginfo } });
    assert.deepEqual(extra_pnginfo, { workflow: { nodes: [{ id: 2 }] } });
  });
});

interface AnythingCase {
  id: string;
  anything_json?: string;
  v1: { ui: { text: unknown[] }; result: unknown[] };
  workflow_after?: unknown;
}

/** No counterpart here: Python's own types. "tuple" is a list here, "tensor" and "dict_tensor" have tests below. */
const PYTHON_ONLY = new Set(["tuple", "tensor", "dict_tensor", "bytes", "set"]);

describe("ext showAnythingLazy", () => {
  describe("golden", () => {
    for (const one of goldenJson<{ cases: AnythingCase[] }>("show_anything_lazy").cases) {
      if (PYTHON_ONLY.has(one.id)) continue;
      it(one.id, async () => {
        const anything =
          one.anything_json === undefined ? undefined : parseJson(one.anything_json, { nonFinite: true });
        const before = structuredClone(anything);
        const extra_pnginfo =
          one.workflow_after === undefined ? undefined : { workflow: { nodes: [{ id: 5 }, { id: 6 }] } };
        const { result, ui } = await invokeNode(
          "ext showAnythingLazy",
          { anything },
          { hidden: { unique_id: "5", extra_pnginfo } },
        );
        assert.deepEqual(result, one.v1.result);
        assert.deepEqual(ui, one.v1.ui);
        assert.deepEqual(extra_pnginfo, one.workflow_after);
        // decision: the input list is not mutated
        assert.deepEqual(structuredClone(anything), before);
      });
    }
  });

  const text = async (...anything: unknown[]) => (await invokeNode("ext showAnythingLazy", { anything })).ui!.text;

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
    assert.deepEqual((await invokeNode("ext showAnythingLazy", { anything: [new NumberLiteral("7.0")] })).result, [
      "7.0",
    ]);
  });

  it("takes a value that is not a list as a list of one", async () => {
    assert.deepEqual((await invokeNode("ext showAnythingLazy", { anything: "a" })).result, ["a"]);
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
    const { result, ui } = await invokeNode("ext showAnythingLazy", { anything: [list] });
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
