import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { decodePng, graphSchema, render } from "latentkit";
import { root } from "../../helpers/folders.js";

const GRAPH = join(root, "examples/hook.json");

describe("the graph that the service has by default", () => {
  const picture = async (set: Record<string, unknown>) => {
    const { files, error } = await render(GRAPH, {
      set: { width: 128, height: 128, steps: 4, ...set },
      output: "memory",
    });
    assert.equal(error, undefined);
    const { width, height, data } = await decodePng(files[0]!.bytes!);
    return { size: [width, height], hash: createHash("sha256").update(data).digest("hex") };
  };

  it("takes a message, and a seed, steps and a size by their names", () => {
    const { required, properties } = graphSchema(GRAPH, { named: true });
    assert.deepEqual(required, ["message"]);
    assert.deepEqual(Object.keys(properties), ["message", "seed", "steps", "width", "height"]);
  });

  it("paints another picture for each message, seed and number of steps, and the same one again", async () => {
    const sets = [
      { message: "a red moon over a lake" },
      { message: "a fox in a green forest" },
      { message: "a red moon over a lake", seed: 1138 },
      { message: "a red moon over a lake", steps: 5 },
    ];
    const hashes = [];
    for (const set of [...sets, sets[0]!]) hashes.push((await picture(set)).hash);
    assert.equal(hashes.at(-1), hashes[0]);
    assert.equal(new Set(hashes).size, sets.length);
  });

  it("paints in the size that is asked for", async () => {
    assert.deepEqual((await picture({ message: "a fox", width: 192, height: 64 })).size, [192, 64]);
  });
});
