import assert from "node:assert/strict";
import { join } from "node:path";
import { invokeNode, render, Tensor } from "latentkit";
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

  it("saves PNG files whatever the format of the run", async () => {
    const graph = {
      1: { class_type: "EmptyImage", inputs: { width: 8, height: 8, batch_size: 1, color: 0 } },
      2: { class_type: "SaveImageWebsocket", inputs: { images: ["1", 0] } },
      3: { class_type: "PreviewImage", inputs: { images: ["1", 0] } },
    };
    await render(graph, { outputDir: folder(), format: { type: "webp" } });
    assert.deepEqual(filesIn(folder()), [join("temp", "preview_00001_.webp"), join("temp", "websocket_00001_.png")]);
  });
});
