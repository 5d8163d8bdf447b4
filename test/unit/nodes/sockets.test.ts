import assert from "node:assert/strict";
import { registry, Tensor } from "latentkit";
import { checkSocket } from "#src/nodes/sockets.js";
import { isWidget } from "#src/nodes/values.js";
import { refuses } from "../../helpers/errors.js";
import { goodValue } from "../../helpers/graph/node-inputs.js";

const at = { nodeId: "12", node: "ext x", input: "y" };

describe("nodes/sockets", () => {
  it("returns a valid value of every type unchanged", () => {
    const definitions = registry.keys().map((key) => registry.get(key)!);
    const specs = definitions.flatMap(({ inputs, outputs }) => [...Object.values(inputs), ...outputs]);
    const types = new Set(specs.map(({ type }) => type).filter((type) => !isWidget(type)));
    assert.ok(types.has("LATENT") && types.has("PIPE_LINE"), [...types].join());
    for (const type of types) {
      const value = goodValue(type);
      assert.equal(checkSocket(type, value, at), value, type);
    }
  });

  it("names node, input, value and what was expected", async () => {
    const error = await refuses(() => checkSocket("LATENT", "abc", at), "input.wrong-type");
    assert.equal(
      error.message,
      'Node 12 (ext x), input "y": expected a latent: { samples: tensor [B, C, H, W], noise_mask?, batch_index? }, received "abc".',
    );
    assert.deepEqual([error.details.nodeId, error.details.node, error.details.input], ["12", "ext x", "y"]);
  });

  it("adds the batch axis to one mask and one image, data shared", () => {
    const mask = Tensor.zeros([2, 3]);
    const batch = checkSocket("MASK", mask, at) as Tensor;
    assert.deepEqual([batch.shape, batch.data === mask.data], [[1, 2, 3], true]);
    const image = Tensor.zeros([2, 3, 3]);
    assert.deepEqual((checkSocket("IMAGE", image, at) as Tensor).shape, [1, 2, 3, 3]);
    const channels = Tensor.zeros([1, 1, 2, 3]);
    assert.equal(checkSocket("MASK", channels, at), channels);
  });

  it("takes null in a latent for no mask and no index", () => {
    const samples = Tensor.zeros([1, 4, 2, 3]);
    const absent = { samples, noise_mask: null, batch_index: null, other: 1 };
    assert.deepEqual(checkSocket("LATENT", absent, at), { samples, other: 1 });
    assert.ok("noise_mask" in absent);
  });

  it("refuses a latent with another mask or index", async () => {
    const samples = Tensor.zeros([1, 4, 2, 3]);
    for (const wrong of [
      { noise_mask: 5 },
      { noise_mask: Tensor.zeros([6]) },
      { batch_index: "x" },
      { batch_index: [-1] },
    ])
      await refuses(() => checkSocket("LATENT", { samples, ...wrong }, at), "input.wrong-type");
  });

  it("takes one item for a list of one", () => {
    assert.deepEqual(checkSocket("LIST", "a", at), ["a"]);
    assert.deepEqual(checkSocket("LIST", [], at), []);
  });

  it("makes a tensor of sigmas that are a list or an array, and takes an empty one", () => {
    for (const sigmas of [[2, 1, 0], Float32Array.of(2, 1, 0), []]) {
      const tensor = checkSocket("SIGMAS", sigmas, at) as Tensor;
      assert.deepEqual([...tensor.data, ...tensor.shape], [...sigmas, sigmas.length]);
    }
  });

  it("takes any member of a union, and knows no other types", async () => {
    const mask = Tensor.zeros([1, 2, 9]);
    assert.equal(checkSocket("IMAGE,MASK", mask, at), mask);
    await refuses(() => checkSocket("IMAGE, MASK", 5, at), "input.wrong-type", /an image.* or a mask/);
    assert.equal(checkSocket("LATENT_OPERATION", 5, at), 5);
    assert.equal(checkSocket("constructor", 5, at), 5);
    assert.equal(checkSocket("*", null, at), null);
    assert.equal(checkSocket("IMAGE,LATENT_OPERATION", 5, at), 5);
  });

  it("accepts null settings of a pipe, and unknown fields", () => {
    for (const pipe of [{}, { loader_settings: null }, { model: 5, vae: "a" }]) {
      assert.equal(checkSocket("PIPE_LINE", pipe, at), pipe);
    }
  });
});
