import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ListedModel } from "latentkit/models";
import { temporaryFolder } from "../../../helpers/folders.js";
import { modelsFolder, ownCacheFolder } from "../../../helpers/models/models-folder.js";
import { runHere } from "../../../helpers/process/run-here.js";

describe("latentkit models", () => {
  const folder = temporaryFolder();
  ownCacheFolder(folder);

  it("prints a line for each file", async () => {
    const models = modelsFolder(folder(), "loras/sd1_diffusers", "embeddings/tiny-a");
    writeFileSync(join(models, "loras/old.pt"), Buffer.from([0x80, 2]));
    const { code, out, err } = await runHere("models", "--models", models);
    assert.deepEqual([code, err], [0, "3 files, 1 of which cannot be loaded\n"]);
    const [refused, lora, embedding, ...rest] = out.split("\n");
    assert.match(
      refused!,
      /^loras\/old\.pt +Model "old\.pt": expected a \.safetensors or GGUF file, received a PyTorch pickle/,
    );
    assert.match(
      lora!,
      /^loras\/sd1_diffusers\.safetensors +LoRA \(diffusers\) +76\.2 kB {2}F32 {2}15\.1 K {2}[0-9a-f]{10}$/,
    );
    assert.match(
      embedding!,
      /^embeddings\/tiny-a\.safetensors +embedding, 3 tokens of 64 +848 B +F32 +192 +[0-9a-f]{10}$/,
    );
    assert.deepEqual(rest, [""]);
  });

  it("prints what listModels returns, as JSON", async () => {
    const models = modelsFolder(folder(), "embeddings/tiny-a");
    const { code, out } = await runHere("models", "--models", models, "--json", "--no-hash");
    const listed = (JSON.parse(out) as { models: ListedModel[] }).models;
    assert.equal(code, 0);
    assert.deepEqual(listed, [
      {
        kind: "embeddings",
        name: "tiny-a.safetensors",
        path: join(models, "embeddings/tiny-a.safetensors"),
        bytes: 848,
        dtypes: ["F32"],
        parameters: 192,
        family: "embedding, 3 tokens of 64",
      },
    ]);
  });

  it("asks for folders, and refuses those that are not there", async () => {
    const { code, err } = await runHere("models");
    assert.equal(code, 2);
    assert.match(err, /no folder given; use --models DIR/);
    assert.equal((await runHere("models", "--models", join(folder(), "none"))).code, 3);
    mkdirSync(join(folder(), "empty"));
    assert.deepEqual(await runHere("models", "--models", join(folder(), "empty")), {
      code: 0,
      out: "",
      err: "0 files\n",
    });
  });
});

describe("latentkit doctor", () => {
  const folder = temporaryFolder();

  it("names ONNX Runtime, what each provider is worth, and the files of models @long", async () => {
    const models = modelsFolder(folder(), "loras/sd1_diffusers", "embeddings/tiny-a");
    const { code, out } = await runHere("doctor", "--json", "--models", models, "--out", folder());
    const { findings } = JSON.parse(out) as { findings: { name: string; ok: boolean; value: string }[] };
    const reported = (name: string) => findings.find((finding) => finding.name === name)?.value;
    assert.equal(code, 0);
    assert.match(reported("ONNX Runtime")!, /^onnxruntime-node \d+\.\d+/);
    assert.equal(reported("on cpu"), "works");
    for (const provider of ["cuda", "dml", "coreml", "webgpu"])
      assert.match(reported(`on ${provider}`)!, /^(?:.*same results as the CPU; .+|not used: .+\.)$/s);
    assert.equal(reported("models"), "LoRAs: 1, embeddings: 1");
    const missing = await runHere("doctor", "--json", "--models", join(folder(), "none"), "--out", folder());
    assert.equal(missing.code, 1);
  });
});
