import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { invokeNode, type Latent, randn, registry, Tensor } from "latentkit";
import { writeSafetensors } from "#src/io/safetensors/write.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";

describe("LoadLatent", () => {
  const folder = temporaryFolder();
  const samples = randn([2, 4, 3, 5], { seed: 3 });
  const write = (name: string, tensors: Record<string, Tensor>) =>
    writeFileSync(join(folder(), name), writeSafetensors(tensors));
  const load = async (latent: string) =>
    ((await invokeNode("LoadLatent", { latent }, { inputDir: folder() })).result[0] as Latent).samples;

  it("reads what SaveLatent has written", async () => {
    const inputs = { samples: { samples }, filename_prefix: "a" };
    await invokeNode("SaveLatent", inputs, { outputDir: folder() });
    assertSameBits(await load("a_00001_.latent"), samples);
  });

  it("scales values of files without a version", async () => {
    write("old.latent", { latent_tensor: Tensor.from([0.18215, -1], [1, 2, 1, 1]) });
    const [first, second] = (await load("old.latent")).data;
    assert.ok(Math.abs(first! - 1) < 1e-6 && Math.abs(second! + 1 / 0.18215) < 1e-6);
  });

  it("counts as changed with the bytes of its file", async () => {
    const hash = () => registry.get("LoadLatent")!.isChanged!({ latent: "a.latent" }, { inputDir: folder() });
    write("a.latent", { latent_tensor: samples });
    const before = await hash();
    assert.equal(await hash(), before);
    write("a.latent", { latent_tensor: Tensor.zeros([2, 4, 3, 5]) });
    assert.notEqual(await hash(), before);
  });

  it("refuses files that hold no latent, and names the input", async () => {
    writeFileSync(join(folder(), "text.latent"), "no safetensors at all");
    write("other.latent", { weight: samples });
    write("flat.latent", { latent_tensor: Tensor.zeros([4]) });
    const sentence = /input "latent": expected a latent that SaveLatent has written, received ".*latent"\. /;
    await refuses(load("text.latent"), "safetensors.invalid", sentence);
    for (const name of ["other.latent", "flat.latent"])
      await refuses(load(name), "safetensors.invalid", sentence, /a tensor "latent_tensor" of 3 to 5 axes/);
  });

  it("refuses names outside the input folder, folders and absent files before it runs", async () => {
    mkdirSync(join(folder(), "sub.latent"));
    write("abc.latent", { latent_tensor: samples });
    await refuses(load("../a.latent"), "path.outside", /input "latent"/);
    await refuses(load("sub.latent"), "file.read-failed", /which is a folder/);
    await refuses(load("abd.latent"), "file.not-found", /Did you mean "abc\.latent"/);
  });
});
