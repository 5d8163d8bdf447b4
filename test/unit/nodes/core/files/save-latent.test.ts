import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { invokeNode, randn, Tensor } from "latentkit";
import { ItemFiles } from "#src/io/files/item-files.js";
import { readSafetensors, toTensor } from "#src/io/safetensors/read.js";
import { refuses } from "../../../../helpers/errors.js";
import { filesIn, temporaryFolder } from "../../../../helpers/folders.js";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";

describe("SaveLatent", () => {
  const folder = temporaryFolder();
  const samples = { samples: randn([1, 4, 2, 3], { seed: 1 }) };
  const save = (filename_prefix: string, hidden = {}) =>
    invokeNode("SaveLatent", { samples, filename_prefix }, { outputDir: folder(), hidden });

  it("names files as the host does and goes on counting", async () => {
    const { result, ui } = await save("latents/fox");
    assert.deepEqual(result, []);
    assert.deepEqual(ui?.latents, [{ filename: "fox_00001_.latent", subfolder: "latents", type: "output" }]);
    await save("latents/fox");
    assert.deepEqual(filesIn(folder()), [join("latents", "fox_00001_.latent"), join("latents", "fox_00002_.latent")]);
  });

  it("writes the values, the mark of their scale, and the metadata", async () => {
    await save("a", { prompt: { 1: { class_type: "x" } }, extra_pnginfo: { workflow: { nodes: [] } } });
    const { tensors, metadata } = readSafetensors(readFileSync(join(folder(), "a_00001_.latent")));
    assert.deepEqual(metadata, { prompt: '{"1": {"class_type": "x"}}', workflow: '{"nodes": []}' });
    assertSameBits(toTensor(tensors.get("latent_tensor")!), samples.samples);
    assertSameBits(toTensor(tensors.get("latent_format_version_0")!), Tensor.zeros([0]));
  });

  it("takes its name from the item in a batch", async () => {
    const files = new ItemFiles({ batch: "0123456789ab", position: 3, number: 4, isKept: false });
    const names = [await files.writeNumbered(folder(), "p", "_.latent", Buffer.from("x"))];
    names.push(await files.writeNumbered(folder(), "p", "_.latent", Buffer.from("x")));
    assert.deepEqual(names, ["p_00004_.latent", "p_00004-2_.latent"]);
  });

  it("refuses a prefix that leads out, before it writes", async () => {
    await refuses(save("../x"), "input.invalid", /filename_prefix/);
    assert.deepEqual(filesIn(folder()), []);
  });
});
