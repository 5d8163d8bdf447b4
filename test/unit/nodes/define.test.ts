import assert from "node:assert/strict";
import { block, createRegistry, defineNode, float, int, invokeNode, render, seed } from "latentkit";
import { refuses } from "../../helpers/errors.js";

/** A node that returns what it is told, whatever it declares. */
const returning = (returned: unknown, outputs: Record<string, string> = { IMAGE: "*", MASK: "*" }) =>
  createRegistry([defineNode({ key: "Gives", inputs: {}, outputs, outputNode: true, run: () => returned as object })]);

async function refused(returned: unknown, pattern: RegExp, outputs?: Record<string, string>): Promise<void> {
  const registry = returning(returned, outputs);
  await refuses(invokeNode("Gives", {}, { registry }), "node.failed", /^Gives: The node returned /, pattern);
  const { status, error } = await render({ "7": { class_type: "Gives", inputs: {} } }, { registry, output: "memory" });
  assert.deepEqual([status, error?.code, error?.details.nodeId], ["failed", "node.failed", "7"]);
  assert.match(error!.message, /^Node 7 \(Gives\): The node returned /);
  assert.match(error!.message, pattern);
}

describe("the value that a node returns", () => {
  it("is refused with a key that is not an output", async () => {
    const hint = / "IMAGES", which is not an output; it declares IMAGE, MASK\. Did you mean IMAGE\?$/;
    await refused({ IMAGES: 1, MASK: 2 }, hint);
    await refused({ IMAGE: 1, MASK: 2, DEPTH: 3 }, / "DEPTH", which is not an output; it declares IMAGE, MASK\.$/);
    await refused({ result: { IMAGE: 1, MASK: 2, DEPTH: 3 }, ui: {} }, / "DEPTH", which is not an output/);
    await refused({ IMAGE: 1 }, / "IMAGE", which is not an output; it declares no outputs\.$/, {});
    await refused(
      { IMAGE: 1, MASK: 2, ui: {} },
      / "IMAGE" beside "ui"; values of outputs go into "result"; it declares /,
    );
  });

  it("is refused without a declared output", async () => {
    const missing = / nothing for its output "MASK"; it declares IMAGE, MASK\.$/;
    for (const returned of [{ IMAGE: 1 }, { IMAGE: 1, MASK: undefined }, [1, undefined]])
      await refused(returned, missing);
    await refused({ ui: { text: ["a"] } }, / nothing for its output "IMAGE"; it declares IMAGE, MASK\.$/);
    await refused(undefined, / nothing for its output "IMAGE"/);
    await refused(null, / nothing for its output "IMAGE"/);
  });

  it("is refused as a list of another length, and as anything but an object", async () => {
    await refused([1], / a list of 1; it declares IMAGE, MASK\.$/);
    await refused([1, 2, 3], / a list of 3; it declares IMAGE, MASK\.$/);
    await refused(5, / 5; it declares IMAGE, MASK\.$/);
    await refused("a", / "a"; it declares IMAGE, MASK\.$/);
    await refused(new Map([["IMAGE", 1]]), / a Map; it declares IMAGE, MASK\.$/);
  });

  it("is taken by name, in order, beside ui, as a blocker or as nothing if nothing is declared", async () => {
    const result = async (returned: unknown, outputs?: Record<string, string>) =>
      (await invokeNode("Gives", {}, { registry: returning(returned, outputs) })).result;
    for (const returned of [{ MASK: null, IMAGE: 1 }, [1, null], { result: { IMAGE: 1, MASK: null }, ui: { a: [1] } }])
      assert.deepEqual(await result(returned), [1, null]);
    const blocker = block("stop");
    assert.deepEqual(await result(blocker), [blocker, blocker]);
    assert.deepEqual(await result({ result: blocker }), [blocker, blocker]);
    for (const returned of [undefined, null, {}, [], { ui: { text: ["a"] } }])
      assert.deepEqual(await result(returned, {}), []);
    assert.deepEqual(await result({ ui: 1 }, { ui: "*" }), [1]);
  });
});

describe("the default of an input", () => {
  it("stands for an input that invokeNode is not given, required or not", async () => {
    const told = defineNode({
      key: "Told",
      inputs: {
        count: int({ default: 3 }),
        factor: float({ default: 0.5, optional: true }),
        seed: seed(),
      },
      outputs: { all: "*" },
      run: (inputs) => ({ all: inputs }),
    });
    const takesLists = defineNode({
      key: "TakesLists",
      inputs: { count: int({ default: 3 }), factor: float({ default: 0.5, optional: true }) },
      outputs: { all: "*" },
      inputIsList: true,
      run: (inputs) => ({ all: inputs }),
    });
    const registry = createRegistry([told, takesLists]);
    const [all] = (await invokeNode("Told", { count: undefined }, { registry })).result;
    assert.deepEqual(all, { count: 3, factor: 0.5, seed: 0n });
    const [lists] = (await invokeNode("TakesLists", {}, { registry })).result;
    assert.deepEqual(lists, { count: [3], factor: [0.5] });
    await refuses(invokeNode("Told", { count: null }, { registry }), "input.missing", /^Told, input "count"/);
  });
});
