import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { batch } from "latentkit";
import { PNG } from "pngjs";
import { encodePng } from "#src/io/png/png.js";
import { checkGrid, openGrid } from "#src/render/contact-sheet/grid.js";
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

  it("makes cells smaller where a page has many, and shows a picture that is gone as unreadable", async () => {
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

  it("refuses a name that is no PNG or another picture's, and wrong keys", async () => {
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
      /another key for each axis, received "a" twice/,
    );
    await refuses(
      () => checkGrid({ rows: "5.sed" }, ["5.seed"]),
      "usage.invalid",
      /expected keys that items set, received "5\.sed"\. Did you mean "5\.seed"/,
    );
    await refuses(() => checkGrid({ columns: "a" } as never), "usage.invalid", /rows: expected a text/);
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
