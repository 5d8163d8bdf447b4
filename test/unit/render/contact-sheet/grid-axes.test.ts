import assert from "node:assert/strict";
import { GridItems } from "#src/render/contact-sheet/grid-axes.js";

const at = (rows: number, columns = 0, pages = 0) => ({ rows, columns, pages });

describe("grid axes", () => {
  it("orders values by their first item, in whatever order items come", () => {
    const items = new GridItems({ rows: "3.steps", columns: "5.cfg" }, (values) => values);
    const values = [20, 10].flatMap((steps) => [7, 1].map((cfg) => ({ "3.steps": steps, "5.cfg": cfg })));
    for (const index of [3, 0, 2, 1]) items.add({ index, values: values[index]!, pictures: [`${index}.png`] });
    const { axes, cell } = items.table()!;
    assert.deepEqual(axes, {
      rows: { name: "steps", labels: ["20", "10"], hidden: 0 },
      columns: { name: "cfg", labels: ["7", "1"], hidden: 0 },
    });
    assert.equal(cell(at(0, 1))!.picture, "1.png");
    assert.equal(cell(at(1, 0))!.picture, "2.png");
  });

  it("counts further pictures of a cell and keeps that of the first item", () => {
    const items = new GridItems({ rows: "a" }, (values) => values);
    items.add({ index: 2, values: { a: 1, b: 2 }, pictures: ["c.png"] });
    items.add({ index: 0, values: { a: 1, b: 1 }, pictures: ["a.png", "b.png"] });
    items.add({ index: 1, values: { a: 2 }, pictures: [], isFailed: true });
    const { cell } = items.table()!;
    assert.deepEqual([cell(at(0))!.picture, cell(at(0))!.more], ["a.png", 2]);
    assert.deepEqual([cell(at(1))!.picture, cell(at(1))!.more], ["failed", 0]);
  });

  it("keeps names apart that are equal, hides redacted values and knows absent ones", () => {
    const items = new GridItems({ rows: "3.text", columns: "4.text" }, (values) => ({
      ...values,
      "3.text": "[hidden]",
    }));
    const long = "x".repeat(300);
    items.add({ index: 0, values: { "3.text": `${long}1` }, pictures: ["a.png"] });
    items.add({ index: 1, values: { "3.text": `${long}2`, "4.text": long }, pictures: ["b.png"] });
    const { axes, cell } = items.table()!;
    assert.deepEqual(axes.rows, { name: "3.text", labels: ["[hidden]", "[hidden]"], hidden: 0 });
    assert.deepEqual([axes.columns!.name, axes.columns!.labels[0]], ["4.text", "not set"]);
    assert.equal(axes.columns!.labels[1]!.length, 200);
    assert.equal(cell(at(0, 1)), undefined, "no item has these values");
    assert.equal(cell(at(1, 1))!.picture, "b.png");
  });

  it("shows the first 200 values of an axis and counts the others", () => {
    const items = new GridItems({ rows: "a" }, (values) => values);
    assert.equal(items.table(), undefined);
    for (let index = 0; index < 250; index++) items.add({ index, values: { a: index }, pictures: [] });
    const { rows } = items.table()!.axes;
    assert.deepEqual([rows.labels.length, rows.labels.at(-1), rows.hidden], [200, "199", 50]);
  });
});
