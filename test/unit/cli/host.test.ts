import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { StoredVerdicts } from "#src/host/checkpoint/runtime/devices/choice.js";
import { filesIn, hashesIn, root, temporaryFolder } from "../../helpers/folders.js";
import { tinyModels } from "../../helpers/models/tiny-host.js";
import { latentkit } from "../../helpers/process/cli.js";
import { softwareGpu } from "../../helpers/process/software-gpu.js";

const source = join(root, "test/graphs/sampling/text-to-image.json");
const small = ["--set", "4.width=64", "--set", "4.height=64", "--set", "5.steps=2"];

describe("latentkit with --models", () => {
  const folder = temporaryFolder();
  const graphWith = (checkpoint: string): string => {
    const path = join(folder(), "graph.json");
    writeFileSync(path, readFileSync(source, "utf8").replace("preview-sd15.safetensors", checkpoint));
    return path;
  };

  it("renders with a checkpoint of the folder, and its first line says so", async () => {
    const graph = graphWith("tiny-sd1.safetensors");
    const out = join(folder(), "out");
    const render = (...args: string[]) => latentkit(["render", graph, "--out", out, ...small, ...args]);
    const own = await render("--models", tinyModels());
    assert.equal(own.code, 0, own.stderr);
    assert.match(own.stderr, /^Your models, on ONNX Runtime\.\n/);
    assert.match(
      own.stderr,
      /^Loading UNet of tiny-sd1\.safetensors \(\d\.\d GB, plus \d\.\d GB mapped from its file\) …$/m,
    );
    assert.equal(filesIn(out).length, 1);
    const config = join(folder(), "latentkit.yaml");
    writeFileSync(config, `models: [${JSON.stringify(tinyModels())}]\n`);
    const configured = await render("--config", config, "--out", join(folder(), "again"));
    assert.equal(configured.code, 0, configured.stderr);
    assert.match(configured.stderr, /^Your models, on ONNX Runtime\./);
    assert.deepEqual(hashesIn(join(folder(), "again")), hashesIn(out));
  });

  it("validates names against the folder, in whatever folder a graph has them, and lists the nearest", async () => {
    const models = ["--models", tinyModels()];
    const known = await latentkit(["validate", graphWith("tiny-sd1.safetensors"), ...models]);
    assert.equal(known.code, 0, known.stdout);
    const foldered = await latentkit(["validate", graphWith("some/folder/tiny-sd1.safetensors"), ...models]);
    assert.equal(foldered.code, 0, foldered.stdout);
    const missing = await latentkit(["validate", graphWith("tiny-sd11.safetensors"), ...models]);
    assert.notEqual(missing.code, 0);
    assert.match(missing.stdout, /tiny-sd1\.safetensors/);
  });

  it("runs the networks where --models-device or models_device says, and nowhere else", async () => {
    const graph = graphWith("tiny-sd1.safetensors");
    const config = join(folder(), "latentkit.yaml");
    writeFileSync(config, `models: [${JSON.stringify(tinyModels())}]\nmodels_device: dml\n`);
    const own = ["--models", tinyModels(), "--models-device"];
    for (const args of [
      [...own, "dml"],
      ["--config", config],
      [...own, "dml", "--seeds", "1..1"],
    ]) {
      const { code, stderr } = await latentkit(["render", graph, "--out", join(folder(), "out"), ...small, ...args]);
      assert.notEqual(code, 0);
      // DirectML is of Windows
      assert.match(stderr, /Provider dml: /);
    }
    const cpu = await latentkit(["render", graph, "--out", folder(), ...small, "--config", config, ...own, "cpu"]);
    assert.equal(cpu.code, 0, cpu.stderr);
    const unknown = await latentkit(["render", graph, ...own, "gpu"]);
    assert.equal(unknown.code, 2);
    assert.match(unknown.stderr, /--models-device: expected auto, cpu, .*webgpu, received "gpu"\./);
    const env = { LATENTKIT_MODELS_DEVICE: "gpu" };
    const { stderr } = await latentkit(["verify", graph, "--models", tinyModels()], { env });
    assert.match(stderr, /LATENTKIT_MODELS_DEVICE: expected auto, cpu, .*webgpu, received "gpu"\./);
  });

  it("warns if auto finds no GPU", async () => {
    const nowhere = join(folder(), "nowhere.json");
    const env = { VK_ICD_FILENAMES: nowhere, VK_DRIVER_FILES: nowhere, LATENTKIT_CACHE_DIR: join(folder(), "cache") };
    const args = ["--models", tinyModels(), "--models-device", "auto", "--models-memory", "1.5 GiB", "--out", folder()];
    const { code, stderr } = await latentkit(["render", graphWith("tiny-sd1.safetensors"), ...small, ...args], { env });
    assert.equal(code, 0, stderr);
    if (process.platform === "linux")
      assert.match(stderr, /^Warning: networks run on the CPU\. No suitable GPU was found\. /m);
  });

  it("ends on Ctrl-C in the trial of a GPU, of which it keeps no verdict", async function () {
    const env = { ...softwareGpu(this), LATENTKIT_CACHE_DIR: join(folder(), "cache") };
    const models = ["--models", tinyModels(), "--models-device", "webgpu", "--out", folder()];
    const commands = {
      "Your models": ["render", graphWith("tiny-sd1.safetensors"), ...models],
      "self-test": ["doctor"],
    };
    for (const [words, args] of Object.entries(commands)) {
      let isTold = false;
      const stop = (text: string, kill: (signal: NodeJS.Signals) => void) => {
        if (isTold || !text.includes(words)) return;
        isTold = true;
        // in the trial, or a little before
        setTimeout(() => kill("SIGINT"), 3000);
      };
      const { code, stderr } = await latentkit(args, { env, onStdout: stop, onStderr: stop });
      assert.equal(code, 130, stderr);
      assert.match(stderr, /^Interrupted\.$/m);
      assert.doesNotMatch(stderr, /Networks run on/);
    }
    assert.equal(await new StoredVerdicts(join(folder(), "cache", "devices")).isEmpty(), true);
  });

  it("takes bytes for --models-memory", async () => {
    for (const size of ["much", "0", "6XB", "-1GB", "99999999GB"]) {
      const args = ["--models", tinyModels(), `--models-memory=${size}`];
      const { code, stderr } = await latentkit(["render", graphWith("tiny-sd1.safetensors"), ...args]);
      assert.equal(code, 2, stderr);
      assert.match(stderr, /--models-memory: expected bytes, such as 6GB or 500MiB, received /);
    }
  });

  it("says which host renders without it, and refuses a folder that does not exist", async () => {
    const graph = graphWith("preview-sd15.safetensors");
    const preview = await latentkit(["render", graph, "--out", folder(), ...small]);
    assert.match(preview.stderr, /^Without a model, .* --models DIR renders with your checkpoints\.\n/);
    const none = await latentkit(["render", graph, "--models", join(folder(), "none")]);
    assert.notEqual(none.code, 0);
    assert.match(none.stderr, /none/);
  });
});
