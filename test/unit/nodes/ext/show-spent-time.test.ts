import assert from "node:assert/strict";
import { invokeNode } from "latentkit";
import { goldenJson } from "../../../helpers/tensor/golden.js";

interface Workflow {
  workflow?: { nodes?: { id: unknown; widgets_values: unknown[] }[] };
}

interface Case {
  id: string;
  pipe: { loader_settings?: { spent_time?: unknown } };
  unique_id: string | number | null;
  extra_pnginfo: Workflow | null;
  extra_pnginfo_after?: Workflow | null;
}

const KEY = "ext showSpentTime";

describe("ext showSpentTime", () => {
  describe("golden", () => {
    for (const one of goldenJson<{ cases: Case[] }>("show_spent_time").cases) {
      it(one.id, async () => {
        const { unique_id, extra_pnginfo } = one;
        const result = await invokeNode(KEY, { pipe: one.pipe }, { hidden: { unique_id, extra_pnginfo } });
        // decision: the text is spent_time or "" also where no workflow node matches
        const settings = one.pipe.loader_settings ?? {};
        const text = "spent_time" in settings ? settings.spent_time : "";
        assert.deepEqual(result, { result: [], ui: { text: [text] } });
        assert.deepEqual(extra_pnginfo, after(one, text));
      });
    }

    function after(one: Case, text: unknown): Workflow | null | undefined {
      const nodes = one.extra_pnginfo?.workflow?.nodes;
      // decision: a number as id matches its text, and a pipe without settings is no error
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
    assert.deepEqual((await invokeNode(KEY, { pipe: {} })).ui, { text: [""] });
    assert.deepEqual((await invokeNode(KEY, { pipe: { loader_settings: {} } })).ui, { text: [""] });
  });

  it("changes the first node of that id only, and takes a workflow as JSON text", async () => {
    const nodes = [{ id: 1 }, { id: "2" }, { id: 2 }, null, 5];
    const extra_pnginfo = { workflow: { nodes } };
    const pipe = { loader_settings: { spent_time: "1 s" } };
    await invokeNode(KEY, { pipe }, { hidden: { unique_id: 2, extra_pnginfo } });
    assert.deepEqual(nodes, [{ id: 1 }, { id: "2", widgets_values: ["1 s"] }, { id: 2 }, null, 5]);
    const hidden = { unique_id: "2", extra_pnginfo: JSON.stringify(extra_pnginfo) };
    assert.deepEqual((await invokeNode(KEY, { pipe }, { hidden })).ui, { text: ["1 s"] });
  });

  it("leaves a frozen workflow as it is", async () => {
    const extra_pnginfo = { workflow: { nodes: [Object.freeze({ id: 2 })] } };
    const pipe = { loader_settings: { spent_time: "1 s" } };
    await invokeNode(KEY, { pipe }, { hidden: { unique_id: "2", extra_pnginfo } });
    assert.deepEqual(extra_pnginfo, { workflow: { nodes: [{ id: 2 }] } });
  });
});
