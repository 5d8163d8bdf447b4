import assert from "node:assert/strict";
import type { RawImage } from "#src/io/png/png.js";
import { GridPage } from "#src/render/contact-sheet/grid-page.js";

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

  it("bounds long labels: a page is no wider or higher for them than for wrapped ones", () => {
    const long = "a very long prompt of many words ".repeat(6).trim();
    const drawn = page([long, "x".repeat(200)], ["y".repeat(200), long]);
    assert.ok(drawn.canvas.width < 28 + 240 + 10 + 2 * cell.width + GAP + 28 + 1, String(drawn.canvas.width));
    assert.ok(drawn.canvas.height < 350, String(drawn.canvas.height));
  });
});
