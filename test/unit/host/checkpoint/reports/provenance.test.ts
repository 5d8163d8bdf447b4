import assert from "node:assert/strict";
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { FileHashes } from "#src/host/checkpoint/files/file-hashes.js";
import { ModelFolders } from "#src/host/checkpoint/files/model-folders.js";
import { provenanceOf } from "#src/host/checkpoint/reports/provenance.js";
import type { RunNetwork, RuntimeState } from "#src/host/checkpoint/session/runtime.js";
import { rejectsAs } from "../../../../helpers/errors.js";
import { sha256, temporaryFolder } from "../../../../helpers/folders.js";

const NAMES = ["checkpoints/a.safetensors", "checkpoints/b.safetensors", "loras/ink/wash.safetensors"];
const EMBEDDINGS = ["embeddings/style.safetensors", "embeddings/old.pt", "embeddings/other.safetensors"];

describe("provenanceOf", () => {
  const folder = temporaryFolder();
  /** Folders with files whose content is their name. */
  const source = (networks: readonly RunNetwork[] = []) => {
    for (const name of [...NAMES, ...EMBEDDINGS]) {
      mkdirSync(dirname(join(folder(), name)), { recursive: true });
      writeFileSync(join(folder(), name), name);
    }
    const state: RuntimeState = { version: "1.2.3", device: { provider: "cpu" }, threads: 3, sessions: [], networks };
    const runtime = { describe: () => state };
    return { folders: new ModelFolders(folder()), hashes: new FileHashes(), runtime };
  };
  const hashOf = (name: string) => sha256(readFileSync(join(folder(), name)));
  const real = (name: string) => realpathSync(join(folder(), name));
  const kindAndName = (path: string) => {
    const [kind, ...name] = path.split("/");
    return { kind: kind as "checkpoints" | "loras", name: name.join("/") };
  };

  it("names the files that names mean, and no other", async () => {
    const own = source();
    const files = [kindAndName(NAMES[0]!), { kind: "loras", name: "wash.safetensors" } as const];
    const { models } = await provenanceOf({ files, texts: [] }, own);
    assert.deepEqual(models, { [NAMES[0]!]: hashOf(NAMES[0]!), [NAMES[2]!]: hashOf(NAMES[2]!) });
  });

  it("names the embeddings of prompts, whatever stands around them", async () => {
    const own = source();
    const texts = ["a lake, (embedding:style, at dawn:1.2)", "(((embedding:old)))", "myembedding:other"];
    const { models } = await provenanceOf({ files: [], texts }, own);
    assert.deepEqual(Object.keys(models), ["embeddings/old.pt", "embeddings/style.safetensors"]);
  });

  it("leaves out what is not there or leads elsewhere", async () => {
    const own = source();
    const files = ["none.safetensors", "../loras/ink/wash.safetensors", "/etc/passwd"].map((name) => {
      return { kind: "checkpoints" as const, name };
    });
    assert.deepEqual(await provenanceOf({ files, texts: ["embedding:../loras/ink/wash"] }, own), { models: {} });
  });

  it("has the plans of networks of these files alone, the last of each", async () => {
    const [a, b, lora] = NAMES;
    source();
    const networks: RunNetwork[] = [
      { key: "", label: "UNet of a", plan: "stream", files: [real(a!)] },
      { key: "", label: "UNet of b", plan: "fold", files: [real(b!)] },
      { key: "", label: "VAE of a", plan: "stream", files: [real(a!)] },
      { key: "", label: "UNet of a", plan: "fold", files: [real(a!), real(lora!)] },
    ];
    const plansWith = async (...names: string[]) => {
      const { runtime } = await provenanceOf({ files: names.map(kindAndName), texts: [] }, source(networks));
      return runtime;
    };
    const facts = { name: "onnxruntime-node", version: "1.2.3", provider: "cpu", threads: 3 };
    const vae = { "VAE of a": "stream" };
    assert.deepEqual(await plansWith(a!), { ...facts, plans: { "UNet of a": "stream", ...vae } });
    assert.deepEqual(await plansWith(a!, lora!), { ...facts, plans: { "UNet of a": "fold", ...vae } });
    assert.equal(await plansWith(lora!), undefined);
  });

  it("ends if the run is interrupted", async () => {
    const named = { files: [kindAndName(NAMES[0]!)], texts: [] };
    const signal = AbortSignal.abort();
    await rejectsAs(signal, provenanceOf(named, source(), signal));
  });
});
