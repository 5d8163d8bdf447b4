import assert from "node:assert/strict";
import { checkCached } from "#src/graph/validation/validate-node.js";
import { freezeJson } from "#src/io/json/lossless.js";
import { defineNode, type NodeDefinition } from "#src/nodes/define.js";
import { socket, text } from "#src/nodes/inputs.js";
import { createRegistry } from "#src/nodes/registry.js";

describe("checkCached", () => {
  let asked = 0;
  const named = defineNode({
    key: "Named",
    inputs: { name: text(), from: socket("IMAGE,MASK", { optional: true }) },
    outputs: { IMAGE: "IMAGE" },
    validate: ({ name }) => {
      asked++;
      return name !== "bad" || "a bad name";
    },
    run: () => [],
  });
  const source = (type: string) => defineNode({ key: "Source", inputs: {}, outputs: { out: type }, run: () => [] });
  const [image, latent] = [source("IMAGE"), source("LATENT")];
  const builtIns = createRegistry([named, image]);
  const raw = (name: string) => ({ class_type: "Named", inputs: { name, from: ["2", 0] } });
  const frozen = (name: string) => {
    const node = raw(name);
    freezeJson(node);
    return node;
  };
  const check = (node: Record<string, unknown>, from: NodeDefinition = image, known = builtIns, inputDir = "/in") =>
    checkCached(
      "1",
      node,
      new Map([
        ["1", named],
        ["2", from],
      ]),
      { inputDir },
      known,
    );
  const asks = (work: () => void) => {
    asked = 0;
    work();
    return asked;
  };

  it("validates a frozen node of the package once, any other each time", () => {
    const node = frozen("good");
    assert.equal(
      asks(() => assert.equal(check(node), check(node))),
      1,
    );
    assert.deepEqual(check(node).values, { name: "good" });
    const open = raw("good");
    assert.equal(
      asks(() => assert.deepEqual(check(open), check(open))),
      2,
    );
    const foreign = createRegistry([image]);
    const other = frozen("good");
    assert.equal(
      asks(() => [check(other, image, foreign), check(other, image, foreign)]),
      2,
    );
  });

  it("validates again among other classes and in another context", () => {
    const node = frozen("good");
    check(node);
    assert.equal(
      asks(() => assert.equal(check(node, latent).errors.length, 1)),
      1,
    );
    assert.equal(
      asks(() => assert.equal(check(node).errors.length, 0)),
      0,
    );
    assert.equal(
      asks(() => check(node, image, builtIns, "/elsewhere")),
      1,
    );
  });

  it("validates again a node that had errors", () => {
    const node = frozen("bad");
    assert.equal(
      asks(() => assert.equal(check(node).errors.length + check(node).errors.length, 2)),
      2,
    );
  });
});
