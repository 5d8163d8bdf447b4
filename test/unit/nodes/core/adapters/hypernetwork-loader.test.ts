import assert from "node:assert/strict";
import { type Host, invokeNode } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { fileHost, patchable } from "../../../../helpers/graph/file-host.js";
import { patchesOf } from "../../../../helpers/graph/patch-tests.js";

describe("HypernetworkLoader", () => {
  const inputs = async (strength: number) => ({
    model: await patchable(),
    hypernetwork_name: "hypernetworks.safetensors",
    strength,
  });

  it("hands the host its hypernetwork and the strength", async () => {
    const hypernetwork = { layers() {} };
    const host: Host = { ...fileHost(), loadFile: async () => hypernetwork as never };
    const { result } = await invokeNode("HypernetworkLoader", await inputs(0.5), { host });
    const [patch] = patchesOf(result[0]);
    assert.deepEqual(patch, { node: "HypernetworkLoader", inputs: { hypernetwork, strength: 0.5 } });
  });

  it("returns the model where the strength is 0, else says what the host lacks", async () => {
    const neutral = await inputs(0);
    assert.deepEqual((await invokeNode("HypernetworkLoader", neutral)).result, [neutral.model]);
    await refuses(invokeNode("HypernetworkLoader", await inputs(1)), "host.missing", /it has no hypernetworks\.$/);
  });
});
