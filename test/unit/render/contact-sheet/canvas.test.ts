import assert from "node:assert/strict";
import { NumberLiteral } from "#src/io/json/lossless.js";
import { Canvas, cut, Varying, wrap, wrapText } from "#src/render/contact-sheet/canvas.js";

describe("labels of a contact sheet", () => {
  it("name the values that vary, seeds of several nodes once", () => {
    const varying = new Varying();
    const items = [
      { "3.steps": "20", "5.seed": 1n, "9.seed": 1n, scene: "a\nlake", "4.cfg": new NumberLiteral("7.0") },
      { "3.steps": "20", "5.seed": 2n, "9.seed": 2n, scene: "a hill", "4.cfg": new NumberLiteral("7.5") },
    ];
    for (const item of items) varying.add(item);
    assert.deepEqual(varying.of(items[0]!), ["seed 1", "scene a lake", "cfg 7.0"]);
    const other = { "5.seed": 1, "9.seed": 2, odd: [1, 2] };
    varying.add(other);
    varying.add({ odd: 1 });
    assert.deepEqual(varying.of(other), ["5.seed 1", "9.seed 2", "odd a list of 2"]);
  });

  it("are broken into lines, and cut if they do not fit", () => {
    assert.deepEqual(wrap(["steps 20", "seed 1", "scene a lake"], 16, 3), ["steps 20  seed 1", "scene a lake"]);
    assert.deepEqual(wrap(["scene a quiet lake"], 10, 3), ["scene a q…"]);
    assert.deepEqual(wrap(["a 1", "b 2", "c 3", "d 4"], 4, 3), ["a 1", "b 2", "c 3…"]);
    assert.deepEqual(wrap(["aaaaaa 1", "b 2"], 4, 1), ["aaa…"]);
    assert.deepEqual(wrap([], 4, 3), []);
    assert.equal(cut("hügel🦊🦊", 6), "hügel…");
    assert.equal(cut("hügel🦊", 6), "hügel🦊");
  });

  it("wrap between words, and within a word that is longer than a line", () => {
    assert.deepEqual(wrapText("a red fox asleep", 8, 3), ["a red", "fox", "asleep"]);
    assert.deepEqual(wrapText("sgm_uniform x", 6, 3), ["sgm_un", "iform", "x"]);
    assert.deepEqual(wrapText("one two three four", 5, 2), ["one", "two …"]);
    assert.deepEqual(wrapText("abcdefghij", 3, 2), ["abc", "de…"]);
    assert.deepEqual(wrapText("", 3, 2), [""]);
    assert.deepEqual(wrapText("ab", 0, 5), ["a", "b"]);
  });

  it("are drawn in a font of 5 x 7, unknown characters as question marks", () => {
    const shown = (text: string, scale = 1) => {
      const canvas = new Canvas(text.length * 6 * scale, 8 * scale, [255, 255, 255]);
      canvas.text(text, 0, 0, scale, [0, 0, 0]);
      return Array.from({ length: canvas.height }, (_, y) =>
        Array.from({ length: canvas.width }, (_, x) => (canvas.data[(y * canvas.width + x) * 3] === 0 ? "#" : " "))
          .join("")
          .trimEnd(),
      );
    };
    assert.deepEqual(shown("L7…"), [
      "#     #####",
      "#         #",
      "#        #",
      "#       #",
      "#      #",
      "#      #",
      "#####  #    # # #",
      "",
    ]);
    assert.deepEqual(shown("狐"), shown("?"));
    assert.deepEqual(shown("\u0000"), shown("?"));
    assert.deepEqual(shown("I", 2).slice(0, 2), ["  ######", "  ######"]);
    // what lies outside is left out
    const small = new Canvas(3, 3, [255, 255, 255]);
    small.text("MM", -2, -2, 2, [0, 0, 0]);
    assert.equal(small.data.length, 27);
  });
});
