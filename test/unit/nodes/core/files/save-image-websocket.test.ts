import assert from "node:assert/strict";
import { join } from "node:path";
import { invokeNode, Tensor } from "latentkit";
import { filesIn, temporaryFolder } from "../../../../helpers/folders.js";

describe("SaveImageWebsocket", () => {
  const folder = temporaryFolder();

  it("saves each image among the temporary files", async () => {
    const images = Tensor.full([2, 3, 4, 3], 0.5);
    const { ui } = await invokeNode("SaveImageWebsocket", { images }, { outputDir: folder() });
    assert.deepEqual(ui?.images, [
      { filename: "websocket_00001_.png", subfolder: "", type: "temp" },
      { filename: "websocket_00002_.png", subfolder: "", type: "temp" },
    ]);
    const files = [join("temp", "websocket_00001_.png"), join("temp", "websocket_00002_.png")];
    assert.deepEqual(filesIn(folder()), files);
  });
});
