import assert from "node:assert/strict";
import { invokeNode } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { FILES } from "../../../../helpers/graph/file-host.js";

describe("SetUnionControlNetType", () => {
  const typed = async (control_net: unknown, type: string) =>
    (await invokeNode("SetUnionControlNetType", { control_net, type })).result[0];

  it("numbers the types, and leaves auto to the net", async () => {
    const net = FILES.controlnet();
    for (const [type, number] of [
      ["auto", -1],
      ["openpose", 0],
      ["canny/lineart/anime_lineart/mlsd", 3],
      ["repaint", 7],
    ] as const)
      assert.deepEqual(await typed(net, type), { type: number });
  });

  it("refuses a net for one type, and unknown types", async () => {
    await refuses(typed({}, "depth"), "host.missing", /host "preview": it has no types for this ControlNet/);
    await refuses(typed({}, "canny"), "input.not-in-list", /type/);
  });
});
