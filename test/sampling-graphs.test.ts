import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decodePng, type RunEvent, render, Tensor } from "latentkit";
import { rejectsAs } from "./helpers/errors.js";
import { filesIn, hashesIn, root, temporaryFolder } from "./helpers/folders.js";

const graphs = join(root, "test/graphs/sampling");
const inputDir = join(root, "test/graphs/input");
const names = readdirSync(graphs).map((file) => file.replace(/\.json$/, ""));

/** Graphs that every run of the tests renders twice; npm run test:long does so with the others. */
const QUICK = ["image-to-image", "inpainting", "text-to-image"];

type Colour = readonly [number, number, number];

/** Mean colour in 0 … 255 of a part of a picture, in shares of its sides. */
async function meanOf(path: string, [left, top, right, bottom]: readonly number[]): Promise<Colour> {
  const { data, width, height, channels } = await decodePng(readFileSync(path));
  const sum = [0, 0, 0];
  let count = 0;
  for (let y = Math.floor(top! * height); y < bottom! * height; y++)
    for (let x = Math.floor(left! * width); x < right! * width; x++, count++)
      for (const k of [0, 1, 2]) sum[k]! += data[(y * width + x) * channels + k]!;
  return sum.map((value) => value / count) as unknown as Colour;
}

const ABOVE = [0, 0, 1, 0.15];
const BELOW = [0, 0.85, 1, 1];
const isBlue = ([red, , blue]: Colour) => blue > red + 40;
const isGreen = ([red, green, blue]: Colour) => green > red + 30 && green > blue + 20;

describe("graphs that sample, on the preview host", () => {
  const folder = temporaryFolder();
  /** Files of each graph as it is, rendered once for all tests. */
  const rendered = new Map<string, Promise<readonly string[]>>();
  let shared: string;
  before(() => {
    shared = mkdtempSync(join(tmpdir(), "latentkit-graphs-"));
  });
  after(() => rmSync(shared, { recursive: true, force: true }));
  const filesOf = (name: string) => {
    const files = rendered.get(name) ?? run(name, {}, join(shared, name));
    rendered.set(name, files);
    return files;
  };
  const run = async (name: string, set: Record<string, unknown> = {}, outputDir = folder()) => {
    const result = await render(join(graphs, `${name}.json`), { outputDir, inputDir, set });
    assert.equal(result.status, "success", result.error?.message);
    return result.files.map(({ path }) => path);
  };

  it("are the ten shapes that people use", () => assert.equal(names.length, 10));

  for (const name of names)
    it(`${name}: gives the same files again${QUICK.includes(name) ? "" : " @long"}`, async () => {
      await filesOf(name);
      await run(name);
      assert.deepEqual(hashesIn(folder()), hashesIn(join(shared, name)));
    });

  for (const name of [
    "text-to-image",
    "custom-sampling",
    "upscale-and-refine",
    "noise-injection",
    "sdxl-base-and-refiner",
  ])
    it(`${name}: the prompt's sky is above and its forest below`, async () => {
      const [path] = await filesOf(name);
      assert.ok(isBlue(await meanOf(path!, ABOVE)));
      assert.ok(isGreen(await meanOf(path!, BELOW)));
    });

  it("image-to-image: less denoising leaves more of the picture", async () => {
    const at = async (denoise: number) => meanOf((await run("image-to-image", { "5.denoise": denoise }))[0]!, BELOW);
    const [little, much] = [await at(0.2), await at(0.9)];
    assert.ok(!isGreen(little) && isGreen(much), `${little} and ${much}`);
  });

  it("inpainting: the left half stays, the right half follows the prompt", async () => {
    const [path] = await filesOf("inpainting");
    const source = await decodePng(readFileSync(join(inputDir, "lake.png")));
    const left = await meanOf(path!, [0, 0, 0.4, 1]);
    const expected = [0, 0, 0];
    for (let i = 0; i < source.data.length; i++) {
      const x = Math.floor(i / source.channels) % source.width;
      if (x < 0.4 * source.width && i % source.channels < 3) expected[i % source.channels]! += source.data[i]!;
    }
    const count = Math.ceil(0.4 * source.width) * source.height;
    for (const k of [0, 1, 2]) assert.ok(Math.abs(left[k]! - expected[k]! / count) < 12, `${left}`);
    assert.ok(isBlue(await meanOf(path!, [0.6, 0, 1, 0.1])));
  });

  it("outpainting: the new margin follows the prompt", async () => {
    const [path] = await filesOf("outpainting");
    const { width, height } = await decodePng(readFileSync(path!));
    assert.deepEqual([width, height], [576, 448]);
    const [other] = await run("outpainting", { "2.text": "white snow under a black sky" });
    const distance = async (area: readonly number[]) => {
      const [one, two] = [await meanOf(path!, area), await meanOf(other!, area)];
      return Math.max(...one.map((value, k) => Math.abs(value - two[k]!)));
    };
    const [inside, margin] = [await distance([0.1, 0.3, 0.5, 0.9]), await distance([0.75, 0.1, 1, 0.9])];
    assert.ok(inside < 2 && margin > 6, `${inside} inside, ${margin} in the margin`);
  });

  it("regional-conditioning: each half has its own text", async () => {
    const [path] = await filesOf("regional-conditioning");
    const brightness = async (area: readonly number[]) => (await meanOf(path!, area)).reduce((a, b) => a + b);
    assert.ok((await brightness([0, 0.65, 0.4, 0.85])) > (await brightness([0.6, 0.65, 1, 0.85])) + 60);
    const redness = async (area: readonly number[]) => {
      const [red, , blue] = await meanOf(path!, area);
      return red - blue;
    };
    assert.ok((await redness([0.6, 0.2, 0.85, 0.4])) > (await redness([0.15, 0.2, 0.4, 0.4])) + 40);
  });

  it("batch-index: an item alone is the item of its batch", async () => {
    const paths = await filesOf("batch-index");
    const pixels = async (part: string) =>
      (await decodePng(readFileSync(paths.find((path) => path.includes(part))!))).data;
    assert.deepEqual(await pixels("third_00001"), await pixels("batch_00003"));
    assert.notDeepEqual(await pixels("batch_00003"), await pixels("batch_00002"));
  });

  it("report each step, with previews where they are asked for", async () => {
    const events: RunEvent[] = [];
    const options = { outputDir: folder(), onEvent: (event: RunEvent) => events.push(event) };
    await render(join(graphs, "text-to-image.json"), { ...options, previews: true });
    const steps = events.flatMap((event) => (event.type === "progress" ? [event] : []));
    assert.deepEqual(
      steps.map(({ value }) => value),
      Array.from({ length: 20 }, (_, i) => i + 1),
    );
    const previews = steps.flatMap(({ preview }) => (preview === undefined ? [] : [preview as Tensor]));
    assert.ok(previews.length >= 1 && previews.length < 20, `${previews.length} previews`);
    assert.ok(previews[0] instanceof Tensor);
    assert.deepEqual([...previews[0].shape], [1, 64, 64, 3]);
  });

  it("stop within a step when they are interrupted", async () => {
    const controller = new AbortController();
    let steps = 0;
    const onEvent = (event: RunEvent) => {
      if (event.type !== "progress") return;
      steps = event.value;
      if (steps === 3) controller.abort();
    };
    const options = { outputDir: folder(), signal: controller.signal, onEvent };
    const rendering = render(join(graphs, "text-to-image.json"), { ...options, set: { "5.steps": 1000 } });
    await rejectsAs(controller.signal, rendering);
    assert.deepEqual(filesIn(options.outputDir), []);
    assert.ok(steps <= 4, `${steps} steps`);
  });
});
