import assert from "node:assert/strict";
import { isPictureName, matchesName, readPattern } from "#src/render/items/picture-pattern.js";
import { refuses } from "../../../helpers/errors.js";
import { growsLinearly } from "../../../helpers/growth.js";

describe("picture patterns", () => {
  it("match names by stars and question marks", () => {
    const yes = [
      ["*", "a"],
      ["*.png", "a.png"],
      ["a*b*c", "aXbYbZc"],
      ["?.png", "é.png"],
      ["?", "🦊"],
      ["**", "x"],
      [".*", ".a"],
      ["[a].png", "[a].png"],
      ["a*", "a\nb"],
    ];
    const no = [
      ["*.png", "a.jpg"],
      ["?", "ab"],
      ["?", ""],
      ["*", ".hidden"],
      ["a*b", "acbd"],
      ["A", "a"],
      ["", "a"],
    ];
    for (const [pattern, name] of yes) assert.ok(matchesName(pattern!, name!), `${pattern} ${name}`);
    for (const [pattern, name] of no) assert.ok(!matchesName(pattern!, name!), `${pattern} ${name}`);
  });

  it("agree with a regular expression on all short names", () => {
    const words = (letters: string, length: number): string[] =>
      length === 0
        ? [""]
        : words(letters, length - 1).flatMap((word) => [
            word,
            ...(word.length === length - 1 ? [...letters].map((c) => word + c) : []),
          ]);
    for (const pattern of words("ab*?", 4)) {
      const expected = new RegExp(`^${pattern.replaceAll("*", ".*").replaceAll("?", ".")}$`);
      for (const name of words("ab", 4))
        assert.equal(matchesName(pattern, name), expected.test(name), `${pattern} ${name}`);
    }
  });

  it("take time that grows with the length of a name, whatever the stars", async () => {
    const pattern = `${"*a".repeat(100)}b`;
    await growsLinearly(
      2500,
      (size) => "a".repeat(size),
      (name) => assert.ok(!matchesName(pattern, name)),
    );
  });

  it("are split into a folder and alternatives", async () => {
    assert.deepEqual(readPattern("photos/*.png"), { folder: "photos", paths: [["*.png"]] });
    assert.deepEqual(readPattern("*.png"), { folder: ".", paths: [["*.png"]] });
    assert.deepEqual(readPattern("/*/b.png"), { folder: "/", paths: [["*", "b.png"]] });
    assert.deepEqual(readPattern("a/b/{c,d}/**/x.{png,jpg}").folder, "a/b");
    assert.deepEqual(readPattern("a/{b,c/d}.{png,jpg}").paths, [["b.png"], ["b.jpg"], ["c", "d.png"], ["c", "d.jpg"]]);
    assert.deepEqual(readPattern("a/{b*").paths, [["{b*"]]);
    assert.deepEqual(readPattern("a/**").paths, [["**", "*"]]);
    await refuses(() => readPattern("{a,b}".repeat(10)), "usage.invalid", /expected at most 64 alternatives in braces/);
    await refuses(() => readPattern("*".repeat(5000)), "usage.invalid", /at most 4096 characters, received 5000/);
  });

  it("know pictures by their endings", () => {
    for (const name of ["a.png", "A.JPG", "a.b.jpeg", "x.webp", "x.avif", "x.gif", "x.tif", "x.TIFF"])
      assert.ok(isPictureName(name), name);
    for (const name of ["png", ".png", "a.txt", "a.png.bak", ""]) assert.ok(!isPictureName(name), name);
  });
});
