import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PNG } from "pngjs";
import { encodePng } from "#src/io/png/png.js";
import type { RawImage } from "#src/io/png/raw-image.js";
import { createContactSheet } from "#src/render/contact-sheet/contact-sheet.js";
import { refuses } from "../../../helpers/errors.js";
import { filesIn, temporaryFolder } from "../../../helpers/folders.js";

const MARGIN = 28;
/** Below the title. */
const TOP = 28 + 14 + 10 + 7 + 20;
const SIDE = 192;
const GAP = 20;

const plain = (width: number, height: number, [r, g, b]: number[]): RawImage => ({
  width,
  height,
  channels: 3,
  data: Uint8Array.from({ length: width * height * 3 }, (_, i) => [r, g, b][i % 3]!),
});

describe("contact sheet", () => {
  const folder = temporaryFolder();
  const path = (name: string) => join(folder(), name);
  const save = async (name: string, image: RawImage) => {
    writeFileSync(path(name), await encodePng(image));
    return path(name);
  };
  const read = (name: string) => {
    const { width, height, data } = PNG.sync.read(readFileSync(path(name)));
    return {
      width,
      height,
      at: (x: number, y: number) => [...data.subarray((y * width + x) * 4, (y * width + x) * 4 + 3)],
    };
  };

  it("draws the pictures in a grid in the order of the items", async () => {
    const sheet = createContactSheet(path("new/sheet.png"), "graph.json");
    const colours = [
      [200, 0, 0],
      [0, 200, 0],
      [0, 0, 200],
      [9, 9, 9],
    ];
    const saved = await Promise.all(colours.map((colour, i) => save(`${i}.png`, plain(384, 384, colour))));
    for (const index of [2, 0, 3, 1])
      await sheet.add({ index, values: { "5.seed": index }, pictures: [saved[index]!] });
    assert.deepEqual(await sheet.finish(), [path("new/sheet.png")]);
    const { width, at } = read("new/sheet.png");
    assert.equal(width, MARGIN * 2 + SIDE * 3 + GAP * 2);
    for (const [i, x] of [0, 1, 2].entries()) {
      assert.deepEqual(at(MARGIN + x * (SIDE + GAP), TOP), colours[i]);
      assert.deepEqual(at(MARGIN + x * (SIDE + GAP) + SIDE - 1, TOP + SIDE - 1), colours[i]);
    }
    const row = SIDE + 8 + 14 + 5 + 7 + 30;
    assert.deepEqual(at(MARGIN, TOP + row), colours[3]);
    assert.deepEqual(filesIn(path("new")), ["sheet.png"]);
  });

  it("marks failed and unreadable items, and centres other shapes", async () => {
    const wide = await save("wide.png", plain(400, 200, [0, 90, 0]));
    writeFileSync(path("broken.png"), "no picture");
    const sheet = createContactSheet(path("sheet.png"), "graph.json");
    await sheet.add({ index: 0, values: {}, pictures: [await save("square.png", plain(192, 192, [1, 2, 3]))] });
    await sheet.add({ index: 1, values: {}, pictures: [], isFailed: true });
    await sheet.add({ index: 2, values: {}, pictures: [wide, path("broken.png"), path("gone.png")] });
    await sheet.add({ index: 3, values: {}, pictures: [] });
    await sheet.finish();
    const { at, width } = read("sheet.png");
    assert.equal(width, MARGIN * 2 + SIDE * 3 + GAP * 2, "a failed item has a tile, one without pictures none");
    const isRed = ([r, g, b]: number[]) => r! > g! + 10 && r! > b! + 10;
    const [second, third] = [MARGIN + SIDE + GAP, MARGIN + 2 * (SIDE + GAP)];
    assert.ok(isRed(at(second, TOP)) && isRed(at(second + 5, TOP + 5)));
    assert.deepEqual(at(third + 96, TOP + 48), [0, 90, 0]);
    assert.deepEqual(at(third + 96, TOP + 143), [0, 90, 0]);
    assert.ok(at(third + 96, TOP + 47)[0]! > 200 && at(third + 96, TOP + 144)[0]! > 200);
    const next = TOP + SIDE + 8 + 14 + 30;
    assert.ok(isRed(at(MARGIN + 5, next + 5)) && isRed(at(second + 5, next + 5)));
  });

  it("begins a new page after 400 pictures, while items still come @long", async () => {
    const picture = await save("p.png", plain(4, 4, [7, 7, 7]));
    const sheet = createContactSheet(path("sheet.png"), "graph.json");
    for (let index = 0; index < 900; index++) {
      await sheet.add({ index, values: { "5.seed": index }, pictures: [picture] });
    }
    assert.deepEqual(filesIn(folder()).includes("sheet.png"), true, "the first page is there before the last item");
    assert.deepEqual(await sheet.finish(), ["sheet.png", "sheet-2.png", "sheet-3.png"].map(path));
    assert.equal(read("sheet-2.png").height, read("sheet.png").height);
    assert.ok(read("sheet-3.png").height < read("sheet.png").height);
    assert.deepEqual(filesIn(folder()), ["p.png", "sheet-2.png", "sheet-3.png", "sheet.png"]);
  });

  it("writes the rest if items are missing, nothing without items", async () => {
    const picture = await save("p.png", plain(4, 4, [7, 7, 7]));
    const sheet = createContactSheet(path("sheet.png"), "graph.json");
    for (const index of [7, 3, 5]) await sheet.add({ index, values: {}, pictures: [picture] });
    assert.deepEqual(await sheet.finish(), [path("sheet.png")]);
    assert.deepEqual(await createContactSheet(path("none.png"), "graph.json").finish(), []);
    assert.deepEqual(filesIn(folder()), ["p.png", "sheet.png"]);
  });

  it("is the same file for the same items", async () => {
    const picture = await save("p.png", plain(40, 30, [70, 8, 9]));
    for (const name of ["a.png", "b.png"]) {
      const sheet = createContactSheet(path(name), "graph.json");
      await sheet.add({ index: 0, values: { scene: "a" }, pictures: [picture] });
      await sheet.add({ index: 1, values: { scene: "b" }, pictures: [picture] });
      await sheet.finish();
    }
    assert.deepEqual(readFileSync(path("a.png")), readFileSync(path("b.png")));
  });

  it("fails at its end if it cannot be written, and not before", async () => {
    mkdirSync(path("sheet.png"));
    const picture = await save("p.png", plain(4, 4, [7, 7, 7]));
    const sheet = createContactSheet(path("sheet.png"), "graph.json");
    for (let index = 0; index < 401; index++) await sheet.add({ index, values: {}, pictures: [picture] });
    await assert.rejects(sheet.finish(), { code: "file.write-failed", message: /sheet\.png/ });
    assert.deepEqual(filesIn(folder()), ["p.png"]);
    const below = createContactSheet(path("p.png/sheet.png"), "graph.json");
    await below.add({ index: 0, values: {}, pictures: [picture] });
    await assert.rejects(below.finish(), {
      code: "file.write-failed",
      message: /p\.png\/sheet\.png": a part of the path/,
    });
  });

  it("removes the later pages of a longer sheet, and no other file @long", async () => {
    const picture = await save("p.png", plain(2, 2, [9, 9, 9]));
    const make = async (count: number) => {
      const sheet = createContactSheet(path("sheet.png"), "graph.json");
      for (let index = 0; index < count; index++) await sheet.add({ index, values: {}, pictures: [picture] });
      return sheet.finish();
    };
    assert.equal((await make(801)).length, 3);
    await save("sheet-4.png", plain(2, 2, [9, 9, 9]));
    writeFileSync(path("sheet-5.png"), "no picture");
    await make(1);
    assert.deepEqual(filesIn(folder()), ["p.png", "sheet-4.png", "sheet-5.png", "sheet.png"]);
    await refuses(() => make(1201), "file.write-failed", /sheet-4\.png" is another picture/);
    assert.deepEqual(filesIn(folder()).slice(1), [
      "sheet-2.png",
      "sheet-3.png",
      "sheet-4.png",
      "sheet-5.png",
      "sheet.png",
    ]);
  });
});
