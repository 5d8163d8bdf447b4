import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { batch } from "latentkit";
import { PNG } from "pngjs";
import { encodePng } from "#src/io/png/png.js";
import type { RawImage } from "#src/io/png/raw-image.js";
import { checkGrid, GridPage, openGrid } from "#src/render/contact-sheet/grid.js";
import { refuses } from "../../../helpers/errors.js";
import { filesIn, temporaryFolder } from "../../../helpers/folders.js";

describe("grid", () => {
  const folder = temporaryFolder();
  const path = (name: string) => join(folder(), name);
  const save = async (name: string, side: number, red: number) => {
    const data = Uint8Array.from({ length: side * side * 3 }, (_, i) => (i % 3 === 0 ? red : 40));
    writeFileSync(path(name), await encodePng({ width: side, height: side, channels: 3, data }));
    return path(name);
  };
  const reds = (name: string) => {
    const { data } = PNG.sync.read(readFileSync(path(name)));
    const counts = new Map<number, number>();
    for (let i = 0; i < data.length; i += 4)
      if (data[i + 1] === 40) counts.set(data[i]!, (counts.get(data[i]!) ?? 0) + 1);
    return Object.fromEntries(counts);
  };

  it("writes a page for each value of the third axis, and removes those of an earlier grid", async () => {
    const fill = async (pages: readonly number[]) => {
      const grid = await openGrid(path("grid.png"), { rows: "a", columns: "b", pages: "c" }, "graph.json");
      let index = 0;
      for (const c of pages)
        for (const b of [1, 2]) {
          const pictures = [await save(`${c}-${b}.png`, 128, 10 * c + b)];
          grid.add({ index: index++, values: { a: 1, b, c }, pictures });
        }
      return grid.finish();
    };
    const all = ["grid.png", "grid-2.png", "grid-3.png"];
    assert.deepEqual(await fill([1, 2, 3]), all.map(path));
    assert.deepEqual(
      all.map(reds),
      [1, 2, 3].map((c) => ({ [10 * c + 1]: 128 ** 2, [10 * c + 2]: 128 ** 2 })),
    );
    assert.deepEqual(await fill([4]), [path("grid.png")]);
    assert.deepEqual(
      filesIn(folder()).filter((name) => name.startsWith("grid")),
      ["grid.png"],
    );
  });

  it("makes cells smaller if a page has many, and shows a picture that is gone as unreadable", async () => {
    const picture = await save("one.png", 512, 200);
    const sizeOf = async (name: string, count: number) => {
      const grid = await openGrid(path(name), { rows: "a", columns: "b" }, "");
      for (let index = 0; index < count; index++)
        grid.add({ index, values: { a: 1, b: index }, pictures: [index === 0 ? picture : path("gone.png")] });
      await grid.finish();
      return { pixels: reds(name)[200], width: PNG.sync.read(readFileSync(path(name))).width };
    };
    assert.equal((await sizeOf("few.png", 2)).pixels, 256 ** 2);
    const many = await sizeOf("many.png", 200);
    assert.equal(many.pixels, 80 ** 2);
    assert.ok(many.width < 18_000);
  });

  it("refuses a name that is not a PNG or another picture's, and wrong keys", async () => {
    const other = await save("other.png", 8, 1);
    await refuses(
      openGrid(other, { rows: "a" }, ""),
      "usage.invalid",
      /grid: expected a free name or an earlier grid's, received ".*other\.png"/,
    );
    await refuses(openGrid(path("a.jpg"), { rows: "a" }, ""), "usage.invalid", /expected a name that ends in \.png/);
    await refuses(
      () => checkGrid({ rows: "a", columns: "a" }),
      "usage.invalid",
      /a different key for each axis, received "a" twice/,
    );
    await refuses(
      () => checkGrid({ rows: "5.sed" }, ["5.seed"]),
      "usage.invalid",
      /expected keys that items set, received "5\.sed"\. Did you mean "5\.seed"/,
    );
    await refuses(() => checkGrid({ columns: "a" } as never), "usage.invalid", /rows: expected a string/);
  });

  it("follows a batch of the library and of its resumed run", async () => {
    const graph = {
      1: { class_type: "EmptyImage", inputs: { width: 64, height: 64, batch_size: 1, color: 0 } },
      2: { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "p" } },
    };
    const items = [16, 32].flatMap((width) => [16, 48].map((height) => ({ "1.width": width, "1.height": height })));
    const options = {
      outputDir: path("out"),
      journal: path("out/j.jsonl"),
      resume: true,
      concurrency: 1,
      grid: { rows: "1.width", columns: "1.height" },
    };
    const run = async (count: number) => {
      let grid: readonly string[] | undefined;
      for await (const event of batch(graph, items.slice(0, count), options))
        if (event.type === "batch-done") ({ grid } = event);
      assert.deepEqual(grid, [path("out/grid.png")]);
      return readFileSync(grid![0]!);
    };
    const part = await run(3);
    const whole = await run(4);
    assert.ok(!part.equals(whole));
    assert.ok((await run(4)).equals(whole), "all skipped");
    const wrong = batch(graph, items, { ...options, grid: { rows: "1.with" } });
    await refuses(wrong.next(), "usage.invalid", /grid: expected keys that items set, received "1\.with"/);
  });
});

const axis = (name: string, labels: string[], hidden = 0) => ({ name, labels, hidden });
const red: RawImage = {
  width: 100,
  height: 60,
  channels: 3,
  data: Uint8Array.from({ length: 18_000 }, (_, i) => (i % 3 === 0 ? 255 : 0)),
};
const cell = { width: 100, height: 80 };
const GAP = 6;
const MARGIN = 28;

function pixel({ canvas }: GridPage, x: number, y: number): number[] {
  const from = (y * canvas.width + x) * 3;
  return [...canvas.data.subarray(from, from + 3)];
}

/** Number of pixels in a rectangle that are dark or red: ink. */
function ink(page: GridPage, left: number, top: number, width: number, height: number): number {
  let count = 0;
  for (let y = top; y < top + height; y++)
    for (let x = left; x < left + width; x++) if (pixel(page, x, y)[1]! < 120) count++;
  return count;
}

describe("grid page", () => {
  const page = (rows: string[], columns: string[]) =>
    new GridPage({
      title: "graph.json",
      subtitle: "seed 1",
      rows: axis("steps", rows),
      columns: axis("cfg", columns),
      cell,
    });

  it("draws pictures in their cells, centred, with labels beside and above", () => {
    const drawn = page(["10", "20"], ["1", "7.5", "9"]);
    const { width, height } = drawn.canvas;
    const left = width - MARGIN - 3 * cell.width - 2 * GAP;
    const top = height - MARGIN - 2 * cell.height - GAP;
    drawn.draw(1, 2, red, 3);
    const [x, y] = [left + 2 * (cell.width + GAP), top + cell.height + GAP];
    assert.deepEqual(pixel(drawn, x, y + 10), [255, 0, 0]);
    assert.deepEqual(pixel(drawn, x + 99, y + 50), [255, 0, 0]);
    assert.notDeepEqual(pixel(drawn, x, y + 9), [255, 0, 0]);
    assert.notDeepEqual(pixel(drawn, x - 1, y + 20), [255, 0, 0]);
    assert.ok(ink(drawn, x + 80, y + 70, 20, 10) > 5, "+3 in the corner");
    for (const row of [0, 1])
      assert.ok(ink(drawn, MARGIN, top + row * (cell.height + GAP), left - MARGIN, cell.height) > 20);
    for (const column of [0, 1, 2])
      assert.ok(ink(drawn, left + column * (cell.width + GAP), top - 26, cell.width, 26) > 8);
  });

  it("marks cells that failed, cannot be read or are missing, in different ways", () => {
    const drawn = page(["10"], ["1", "2", "3"]);
    const { width, height } = drawn.canvas;
    const [left, top] = [width - MARGIN - 3 * cell.width - 2 * GAP, height - MARGIN - cell.height];
    for (const [column, word] of (["failed", "unreadable", "missing"] as const).entries())
      drawn.draw(0, column, word, 0);
    const beds = [0, 1, 2].map((column) => pixel(drawn, left + column * (cell.width + GAP) + 5, top + 5));
    assert.deepEqual(beds[0], beds[1]);
    assert.notDeepEqual(beds[0], beds[2]);
    for (const column of [0, 1, 2])
      assert.ok(ink(drawn, left + column * (cell.width + GAP) + 2, top + 20, 96, 40) > 30);
  });

  it("bounds long labels: a page is as wide and high for them as for wrapped ones", () => {
    const long = "a very long prompt of many words ".repeat(6).trim();
    const drawn = page([long, "x".repeat(200)], ["y".repeat(200), long]);
    assert.ok(drawn.canvas.width < 28 + 240 + 10 + 2 * cell.width + GAP + 28 + 1, String(drawn.canvas.width));
    assert.ok(drawn.canvas.height < 350, String(drawn.canvas.height));
  });
});
