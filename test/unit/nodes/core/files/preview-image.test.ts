import assert from "node:assert/strict";
import { join } from "node:path";
import { invokeNode, Tensor } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { filesIn, temporaryFolder } from "../../../../helpers/folders.js";

const images = Tensor.full([2, 3, 4, 3], 0.5);

describe("PreviewImage", () => {
  const folder = temporaryFolder();

  it("keeps its files out of the output folder's root", async () => {
    const { ui } = await invokeNode("PreviewImage", { images }, { outputDir: folder() });
    assert.deepEqual(ui?.images, [
      { filename: "preview_00001_.png", subfolder: "", type: "temp" },
      { filename: "preview_00002_.png", subfolder: "", type: "temp" },
    ]);
    assert.deepEqual(filesIn(folder()), [join("temp", "preview_00001_.png"), join("temp", "preview_00002_.png")]);
  });

  it("refuses what is no image", async () => {
    await refuses(invokeNode("PreviewImage", { images: [1] }, { outputDir: folder() }), "input.wrong-type", /images/);
  });
});
