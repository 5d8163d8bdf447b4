import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { decodePng, invokeNode, Tensor } from "latentkit";
import { filesIn, temporaryFolder } from "../../../../helpers/folders.js";

describe("MaskPreview", () => {
  const folder = temporaryFolder();

  it("saves each mask as a grey picture for temporary files", async () => {
    const mask = Tensor.from([0, 1, 0.5, 0.2, 1, 0, 0, 1], [2, 1, 2, 2]);
    const { ui } = await invokeNode("MaskPreview", { mask }, { outputDir: folder() });
    assert.deepEqual(ui?.images, [
      { filename: "mask_00001_.png", subfolder: "", type: "temp" },
      { filename: "mask_00002_.png", subfolder: "", type: "temp" },
    ]);
    const files = filesIn(folder());
    assert.deepEqual(files, [join("temp", "mask_00001_.png"), join("temp", "mask_00002_.png")]);
    const { data } = await decodePng(readFileSync(join(folder(), files[0]!)));
    assert.deepEqual(
      [...data],
      [0, 255, 127, 51].flatMap((value) => [value, value, value]),
    );
  });
});
