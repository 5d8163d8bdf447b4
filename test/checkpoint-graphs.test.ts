import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createRenderer, decodePng, type Renderer, type RunEvent, render } from "latentkit";
import { type CheckpointHost, createCheckpointHost } from "latentkit/models";
import { rejectsAs } from "./helpers/errors.js";
import { filesIn, hashesIn, root, temporaryFolder } from "./helpers/folders.js";
import { tinyModels } from "./helpers/models/tiny-host.js";

const graphs = join(root, "test/graphs/sampling");
const inputDir = join(root, "test/graphs/input");
const names = readdirSync(graphs).map((file) => file.replace(/\.json$/, ""));

const sides = (node: number, side: number) => ({ [`${node}.width`]: side, [`${node}.height`]: side });
const pipeSides = (node: number, side: number) => ({
  [`${node}.empty_latent_width`]: side,
  [`${node}.empty_latent_height`]: side,
});
/** Smaller pictures, for the time that tests take; text-to-image has its own size. */
const SMALLER: Readonly<Record<string, Record<string, number>>> = {
  "batch-index": sides(4, 128),
  "custom-sampling": sides(4, 256),
  "image-to-image": sides(9, 256),
  inpainting: sides(9, 256),
  "noise-injection": { ...sides(4, 256), ...pipeSides(8, 256) },
  outpainting: sides(9, 128),
  "regional-conditioning": { ...sides(4, 256), ...pipeSides(13, 256) },
  "sdxl-base-and-refiner": sides(4, 384),
  "upscale-and-refine": sides(4, 192),
};

/** Graphs of every run of the tests; the others are rendered by npm run test:long. */
const QUICK = ["image-to-image", "inpainting", "noise-injection"];

describe("graphs that sample, on tiny checkpoints", () => {
  const folder = temporaryFolder();
  let host: CheckpointHost;
  let renderer: Renderer;
  before(() => {
    host = createCheckpointHost({ models: tinyModels() });
    renderer = createRenderer({ models: { folders: tinyModels() }, threads: 1 });
  });
  after(async () => {
    await host.close();
    await renderer.close();
  });

  it("are those of the preview host", () => assert.equal(names.length, 10));

  for (const name of names)
    it(`${name}: well-formed pictures, the same again in a thread${QUICK.includes(name) ? "" : " @long"}`, async () => {
      const set = SMALLER[name] ?? {};
      const graph = join(graphs, `${name}.json`);
      const [first, again] = [join(folder(), "first"), join(folder(), "again")];
      const { status, error, files, warnings } = await render(graph, { host, outputDir: first, inputDir, set });
      assert.equal(status, "success", error?.message);
      assert.ok(files.length > 0);
      assert.deepEqual(warnings, []);
      for (const { path } of files) {
        const { data, width, height } = await decodePng(readFileSync(path));
        assert.ok(width >= 128 && height >= 128, `${width} x ${height}`);
        // of random weights comes something, but neither one colour nor black and white alone
        assert.ok(new Set(data).size > 64, path);
      }
      const repeated = await renderer.render({ graph, outputDir: again, inputDir, set });
      assert.equal(repeated.status, "success", repeated.error?.message);
      assert.deepEqual(hashesIn(again), hashesIn(first));
    });

  it("stop within a step when they are interrupted, and the next run works", async () => {
    const controller = new AbortController();
    let steps = 0;
    const onEvent = (event: RunEvent) => {
      if (event.type !== "progress") return;
      steps = event.value;
      if (steps === 3) controller.abort();
    };
    const graph = join(graphs, "text-to-image.json");
    const set = { "4.width": 128, "4.height": 128, "5.steps": 500 };
    const options = { host, outputDir: folder(), set };
    await rejectsAs(controller.signal, render(graph, { ...options, signal: controller.signal, onEvent }));
    assert.deepEqual(filesIn(options.outputDir), []);
    assert.ok(steps <= 4, `${steps} steps`);
    assert.equal((await render(graph, { ...options, set: { ...set, "5.steps": 2 } })).status, "success");
  });

  it("run beside each other on one set of loaded models, each as alone", async () => {
    const graph = join(graphs, "text-to-image.json");
    const run = async (part: string, seed: number) => {
      const set = { "4.width": 128, "4.height": 128, "5.steps": 4, "5.seed": seed };
      const outputDir = join(folder(), part);
      assert.equal((await render(graph, { host, outputDir, set })).status, "success");
      return hashesIn(outputDir);
    };
    const alone = [await run("a", 1), await run("b", 2)];
    assert.notDeepEqual(alone[0], alone[1]);
    assert.deepEqual(await Promise.all([run("c", 1), run("d", 2)]), alone);
  });
});
