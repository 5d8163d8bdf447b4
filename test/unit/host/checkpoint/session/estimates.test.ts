import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Tensor } from "latentkit";
import { recogniseCheckpoint } from "#src/host/checkpoint/families/recognise.js";
import { ModelPart } from "#src/host/checkpoint/session/model-part.js";
import type { Feeds, Runtime } from "#src/host/checkpoint/session/runtime.js";
import { type SessionSource, sessionBytes, workBytes } from "#src/host/checkpoint/session/sessions.js";
import { BuiltVae } from "#src/host/checkpoint/vae/model.js";
import { recogniseVae } from "#src/host/checkpoint/vae/recognise.js";
import type { StoredWeight, WeightFile } from "#src/host/checkpoint/weights/stored.js";
import type { Conditioning, SamplingRun } from "#src/host/types.js";
import { root } from "../../../../helpers/folders.js";

interface FullSize {
  weightsOf(family: string): [key: string, shape: readonly number[]][];
}

/** Cells along a side of a latent of 1024 x 1024. */
const [CELLS, LARGE_CELLS] = [128, 64];

describe("estimates of memory", () => {
  let fullSize: FullSize;
  before(async () => {
    fullSize = (await import(pathToFileURL(join(root, "scripts/full-size/families.mjs")).href)) as FullSize;
  });

  /** A file in F16 that is not there, as its header tells. */
  function fileOf(family: string): WeightFile {
    const weights = fullSize.weightsOf(family).map(([key, shape]): [string, StoredWeight] => {
      const bytes = 2 * shape.reduce((size, side) => size * side, 1);
      return [key, { file: family, key, dtype: "F16", shape, from: 0, to: bytes }];
    });
    return { name: family, path: family, metadata: {}, weights: new Map(weights) } as unknown as WeightFile;
  }

  /** The estimate for a call, in gigabytes: "0.9 + 12.3", its own and those of its file. */
  async function estimate(call: (runtime: Runtime) => Promise<unknown>): Promise<string> {
    let known = "";
    const run = async (source: SessionSource, feeds: Feeds) => {
      const own = sessionBytes(source, "stream") + workBytes(source, feeds);
      known = [own, source.fileBytes].map((bytes) => (bytes / 1e9).toFixed(1)).join(" + ");
      throw new Error("nothing runs");
    };
    await assert.rejects(call({ run } as unknown as Runtime), /nothing runs/);
    return known;
  }

  async function transformer(family: string, tokens: number): Promise<string> {
    const file = fileOf(family);
    const { network } = await recogniseCheckpoint(file, () => assert.fail("nothing is read"));
    return estimate(async (runtime) => {
      const built = network.open(runtime, file);
      const cells = family.startsWith("flux2") ? LARGE_CELLS : CELLS;
      const x = Tensor.zeros([1, built.inChannels, cells, cells]);
      const context = Tensor.zeros([1, tokens, built.contextDim!]);
      const entry: Conditioning[number] = [context, {}];
      const labels = built.labelInputs(entry, { kind: "sdxl", cells: [cells, cells], isNegative: false });
      const ofRun = built.forRun({ latent: x, negative: [], steps: 1 } as unknown as SamplingRun);
      return ofRun.predict({ x, noisy: x, timestep: 0.7, context, labels, entry, entries: [entry], sigma: 0.7 });
    });
  }

  function decoder(family: string, channels: number, cells: number): Promise<string> {
    const file = fileOf(family);
    const vae = recogniseVae(file);
    assert.ok(vae.kind === "vae");
    const part = ModelPart.of("VAE", file, vae.part);
    const z = Tensor.zeros([1, channels, cells, cells]);
    return estimate((runtime) => new BuiltVae(runtime, { kind: "vae", part }).decode(z));
  }

  it("are those of the table in docs/models.md", async () => {
    const rows = readFileSync(join(root, "docs/models.md"), "utf8").split("\n");
    const estimates = {
      "Z-Image, 6.2 billion parameters": await transformer("z-image", 100),
      "Flux.1, 11.9 billion": await transformer("flux1", 256),
      "Flux.2 klein 4B, 3.9 billion": await transformer("flux2-klein", 512),
      "SD 3.5 medium, 2.5 billion": await transformer("sd3.5-medium", 154),
      "Qwen-Image, 20.4 billion": await transformer("qwen-image", 100),
      "VAE of Flux, SD 3 and Z-Image; of Flux.2": await decoder("flux2-vae", 128, LARGE_CELLS),
    };
    for (const [name, expected] of Object.entries(estimates)) {
      const row = rows.find((line) => line.startsWith(`| ${name} |`));
      assert.equal(row?.split(" | ")[1], expected, name);
    }
  });

  it("are equal for VAEs of equal blocks, and less for one whose widest level is not in tiles", async () => {
    assert.equal(await decoder("flux-vae", 16, CELLS), await decoder("flux2-vae", 128, LARGE_CELLS));
    assert.equal(await decoder("wan-vae", 16, CELLS), "1.9 + 0.2");
  });
});
