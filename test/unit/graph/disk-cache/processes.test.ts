import assert from "node:assert/strict";
import { execFile, fork } from "node:child_process";
import { utimesSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { createDiskCache } from "latentkit";
import { filesIn, hashesIn, root, temporaryFolder } from "../../../helpers/folders.js";
import { isResult, SIZE, signatureOf } from "../../../helpers/process/cache-writer.js";
import { seededInts } from "../../../helpers/seeded.js";

const run = promisify(execFile);
const writer = join(root, "build/test/helpers/process/cache-writer.js");
const library = pathToFileURL(join(root, "dist/index.js")).href;

/** Renders a graph with the cache and prints what was cached and what ran. */
const RENDER = `
  const { createDiskCache, render } = await import(${JSON.stringify(library)});
  const [graph, folder, outputDir] = process.argv.slice(1);
  const told = { cached: [], ran: [] };
  const onEvent = (event) => {
    if (event.type === "cached") told.cached.push(...event.nodeIds);
    if (event.type === "node-start") told.ran.push(event.nodeId);
  };
  const { status } = await render(graph, { diskCache: createDiskCache({ folder, minMs: 0 }), outputDir, onEvent });
  console.log(JSON.stringify({ ...told, status }));
`;

describe("processes that share a disk cache", () => {
  const folder = temporaryFolder();
  const cacheFolder = () => join(folder(), "cache");
  const entries = () => filesIn(cacheFolder()).filter((name) => name.endsWith(".lkc"));
  const temporaries = () => filesIn(cacheFolder()).filter((name) => !name.endsWith(".lkc"));

  it("render the same picture, the second one from stored results", async () => {
    const settings = { ckpt_name: "preview-sdxl.safetensors", positive: "a fox", negative: "", batch_size: 1 };
    const size = { empty_latent_width: 128, empty_latent_height: 64 };
    const noise = { sampler_name: "euler", scheduler: "karras", steps: 20, start_at_step: 0, end_at_step: 20 };
    const graph = JSON.stringify({
      load: { class_type: "ext pipeLoader", inputs: { ...settings, ...size } },
      noise: { class_type: "ext latentNoisy", inputs: { ...noise, source: "GPU", seed: 7, pipe: ["load", 0] } },
      decode: { class_type: "VAEDecode", inputs: { samples: ["noise", 1], vae: ["load", 2] } },
      save: { class_type: "SaveImage", inputs: { images: ["decode", 0], filename_prefix: "fox" } },
    });
    const render = async (name: string): Promise<unknown> => {
      const given = ["--input-type=module", "-e", RENDER, graph, cacheFolder(), join(folder(), name)];
      return JSON.parse((await run(process.execPath, given)).stdout);
    };
    const all = ["load", "noise", "decode", "save"];
    assert.deepEqual(await render("first"), { cached: [], ran: all, status: "success" });
    assert.deepEqual(await render("second"), { cached: ["decode"], ran: ["save"], status: "success" });
    const first = hashesIn(join(folder(), "first"));
    assert.deepEqual([hashesIn(join(folder(), "second")), Object.keys(first)], [first, ["fox_00001_.png"]]);
  });

  it("write and evict concurrently without a wrong result or a broken bound @long", async () => {
    const bound = 40 * 204_800;
    const given = (first: number) => [writer, cacheFolder(), String(first), "120", String(bound)];
    const ends = await Promise.all([0, 0, 60].map((first) => run(process.execPath, given(first))));
    for (const { stdout } of ends) assert.deepEqual(JSON.parse(stdout), { wrong: 0, warning: null });
    assert.ok(entries().length <= 40 && entries().length >= 20, `${entries().length} entries`);
    assert.deepEqual(temporaries(), []);
  });

  it("leave only whole entries when killed at any moment, fifty times @long", async () => {
    const random = seededInts(7);
    const given = ["0", "100000", String(2 ** 40)];
    const kill = async () => {
      const child = fork(writer, [cacheFolder(), ...given], { stdio: "ignore" });
      await new Promise((resolve) => child.once("message", resolve));
      await new Promise((resolve) => setTimeout(resolve, random(40)));
      child.kill("SIGKILL");
      await new Promise((resolve) => child.once("exit", resolve));
    };
    for (let round = 0; round < 25; round++) await Promise.all([kill(), kill()]);
    const cache = createDiskCache({ folder: cacheFolder() });
    const before = entries().length;
    assert.ok(before > 0);
    let whole = 0;
    for (let i = 0; i < 5000 && whole < before; i++) {
      const outputs = await cache.read(signatureOf(i), () => true);
      if (outputs === undefined) continue;
      assert.ok(isResult(i, outputs), `result ${i} of ${SIZE}`);
      whole++;
    }
    assert.deepEqual([whole, entries().length], [before, before]);
    for (const name of temporaries()) {
      assert.match(name, /^\.latentkit-[0-9a-f]{24}\.tmp$/);
      utimesSync(join(cacheFolder(), name), 0, 0);
    }
    cache.write(signatureOf(-1), [[1]], 1e9);
    await cache.idle();
    assert.deepEqual(temporaries(), []);
  });
});
